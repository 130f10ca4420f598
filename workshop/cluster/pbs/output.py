"""Where the output of a job goes while it runs, and where it is found afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Protocol

from .request import Request


class Printed(Protocol):
    """What the output needs to know of a job, and tells of it."""

    request: Request
    number: int
    index: int | None
    submitted_from: Path
    output: str
    error: str
    earlier: tuple[str, str]
    output_path: Path | None
    error_path: Path | None

    @property
    def id(self) -> str: ...


class Output:
    """The stdout and stderr of one run of a job; ``folder``: of its first host."""

    def __init__(self, job: Printed, folder: Path, home: Path):
        self.job, self.spool, self.home = job, folder / "spool/pbs", home
        self.paths = self.destinations()
        job.output_path, job.error_path = self.paths
        self.files = self.choose_files()

    def choose_files(self) -> tuple[Path, Path]:
        """Where the job writes stdout and stderr while it runs."""
        request, (out, err) = self.job.request, self.paths
        if not {"o", "d"} <= set(request.keep):  # else in place from the start
            out = self.spool / "spool" / f"{self.job.id}.OU"
        if not {"e", "d"} <= set(request.keep):
            err = self.spool / "spool" / f"{self.job.id}.ER"
        return {"oe": (out, out), "eo": (err, err)}.get(request.join, (out, err))

    def destinations(self) -> tuple[Path, Path]:
        """Where stdout and stderr are found after the end."""
        request, job = self.job.request, self.job
        index = "" if job.index is None else f".{job.index}"
        paths = []
        for letter, suffix, given in (
            ("o", "OU", request.output),
            ("e", "ER", request.error),
        ):
            folder = job.submitted_from
            if letter in request.keep and "d" not in request.keep:
                folder, given = self.home, None
            if given is None:
                path = folder / f"{request.name}.{letter}{job.number}{index}"
            else:  # taken literally, variables and all; a host in front is dropped
                path = folder / given.rpartition(":")[2]
                if given.endswith("/") or path.is_dir():
                    path = path / f"{job.id}.{suffix}"
            paths.append(path)
        return paths[0], paths[1]

    def begin(self) -> None:
        """Make the files, with what the job printed before it was run again."""
        for path, text in zip(self.files, self.job.earlier, strict=True):
            path.touch(0o666 & ~self.job.request.umask)
            if text:
                path.write_text(text)

    def discard(self) -> None:
        """Remove what is only on the host."""
        for path in set(self.files) - set(self.paths):
            path.unlink(missing_ok=True)

    def read(self) -> tuple[str, str]:
        out, err = (path.read_text(errors="replace") for path in self.files)
        return out, err

    def deliver(self) -> None:
        """Copy the output to its place; where that fails, it stays on the host."""
        join, (out, err) = self.job.request.join, self.read()
        self.job.output = "" if join == "eo" else out
        self.job.error = "" if join == "oe" else err
        joined = {"oe": self.paths[0], "eo": self.paths[1]}.get(join)
        for source, path in dict(zip(self.files, self.paths, strict=True)).items():
            target = joined or path
            if source == target:
                continue
            try:
                shutil.copy(source, target)  # with its rights: -W umask
            except OSError:
                shutil.copy(source, self.spool / "undelivered" / source.name)
        self.discard()
