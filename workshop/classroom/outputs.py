"""The files that the results are written to, again and again during grading."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from workshop.classroom.book import Gradebook
from workshop.classroom.formats import to_csv, to_json, to_junit
from workshop.classroom.report import to_html
from workshop.errors import UserError
from workshop.learner.progress import write_atomically

WRITE_EVERY = 2.0  # seconds between two writings of the results


class Outputs:
    """The files that results are written to; tried out before grading starts.

    ``watching``: more will be graded when all is done, so the page keeps reloading.
    """

    def __init__(
        self,
        csv: Path | None = None,
        json: Path | None = None,
        junit: Path | None = None,
        html: Path | None = None,
        watching: bool = False,
    ):
        wanted = {"csv": csv, "json": json, "junit": junit, "html": html}
        self.watching = watching
        self.paths = {kind: path for kind, path in wanted.items() if path is not None}
        self.problem = ""
        self._written = 0.0
        self._told = -1  # number of grades in what was written last

    def try_out(self) -> None:
        """Raises a UserError if one of the files could not be written later."""
        seen: dict[str, str] = {}
        for kind, path in self.paths.items():
            real = os.path.realpath(path)
            if real in seen:
                raise UserError(
                    f"--{seen[real]} and --{kind} both name {path}: give two files"
                )
            seen[real] = kind
            self._try_one(kind, path)

    def _try_one(self, kind: str, path: Path) -> None:
        cure = "name another file"
        if path.is_dir():
            raise UserError(f"--{kind} {path} is a folder: {cure}")
        if not path.parent.is_dir():
            raise UserError(f"--{kind} {path}: there is no folder {path.parent}")
        # Replacing /dev/null or a pipe by a file would break other programs.
        if path.exists() and not path.is_file():
            raise UserError(f"--{kind} {path} is not a plain file: {cure}")
        try:
            if path.exists():
                with open(path, "a"):
                    pass
            folder = os.path.dirname(os.path.realpath(path))
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".workshop-"):
                pass
        except OSError as error:
            reason = error.strerror
            raise UserError(
                f"--{kind} {path} cannot be written ({reason}): {cure}"
            ) from error

    def write(self, book: Gradebook, now: bool = False) -> None:
        """Write all of them, at most every WRITE_EVERY seconds unless ``now``."""
        clock = time.monotonic()
        graded = book.graded
        if not now and (graded == self._told or clock - self._written < WRITE_EVERY):
            return
        texts: dict[str, Callable[[Gradebook], str]] = {
            "csv": to_csv,
            "json": to_json,
            "junit": to_junit,
            "html": partial(
                to_html, live=self.watching or not now, clock=time.strftime("%H:%M:%S")
            ),
        }
        self.problem = ""
        for kind, path in self.paths.items():
            try:
                write_atomically(path, texts[kind](book))
            except OSError as error:
                self.problem = f"--{kind} {path} was not written: {error.strerror}"
        self._written, self._told = time.monotonic(), graded

    def where(self) -> str:
        """``; their results are in a.csv`` for the last sentence."""
        names = ", ".join(str(path) for path in self.paths.values())
        return f"; their results are in {names}" if names else ""
