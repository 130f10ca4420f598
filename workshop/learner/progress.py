"""What the learner has reached: ``.workshop/progress.json``, by content.

A verdict belongs to the bytes that were checked (the learner's file and the
checks), not to a name or a date: a file that changed since, or whose checks
changed, is "changed" until it is checked again, and a file that is put back to
what it was is right again at once.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from workshop.catalog import Exercise
from workshop.errors import UserError
from workshop.skeleton import read_solution, same_code, skeleton_text

RIGHT = "right"
NOT_FULLY = "not fully checked"
WRONG = "wrong"
CHANGED = "changed"
NOT_STARTED = "not started"
MISSING = "missing"

MAX_BYTES = 1_000_000  # an exercise is a few KB; more is an accident or an attack


def read_bytes(path: Path) -> bytes:
    """The content of a small regular file, without ever waiting for it.

    Raises:
        FileNotFoundError: there is nothing at that path.
        UserError: a folder, a pipe, a device, too large, or not readable.
    """
    try:
        # O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    seen = os.fstat(descriptor)
    if not stat.S_ISREG(seen.st_mode):  # open() takes no folder
        os.close(descriptor)
        raise UserError(f"{path} is not a plain file: put the exercise there")
    with open(descriptor, "rb") as file:
        if seen.st_size > MAX_BYTES:
            raise UserError(
                f"{path} has {seen.st_size:,} bytes; an exercise has at most "
                f"{MAX_BYTES:,}: start again with workshop reset"
            )
        return file.read(MAX_BYTES + 1)


def write_atomically(path: Path, text: str) -> None:
    """Replace ``path``; a reader sees the old text or the new, never half of one.

    Raises:
        OSError: it cannot be written, or is a device, a pipe, or a folder.
    """
    target = Path(os.path.realpath(path))  # keep a link to a file a link
    # Renaming a file onto /dev/null or a pipe takes it away from every program.
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a plain file", str(target))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def content_of(exercise: Exercise) -> bytes | None:
    """The learner's file, or None if there is none."""
    try:
        return read_bytes(exercise.path)
    except FileNotFoundError:
        return None


def digest_of(exercise: Exercise, content: bytes) -> str:
    """Names one content of the learner's file together with its checks."""
    digest = hashlib.sha256(content)
    with contextlib.suppress(OSError):
        digest.update(b"\0checks\0" + exercise.checks.read_bytes())
    return digest.hexdigest()


def is_untouched(exercise: Exercise, content: bytes) -> bool:
    """Whether the file still is the skeleton (comments and spaces aside)."""
    try:
        text = content.decode("utf-8")
        skeleton = skeleton_text(read_solution(exercise.solution), exercise.suffix)
    except (UnicodeDecodeError, UserError):
        return False
    return text == skeleton or same_code(text, skeleton, exercise.suffix)


class Progress:
    """Reads and writes the learner's progress; any number of terminals may."""

    def __init__(self, root: Path, say: Callable[[str], None] = print):
        self.folder = root / ".workshop"
        self.path = self.folder / "progress.json"
        self.say = say

    def state(self, exercise: Exercise) -> str:
        """right, not fully checked, wrong, changed, not started or missing."""
        return self.states([exercise])[exercise.name]

    def states(self, exercises: list[Exercise]) -> dict[str, str]:
        """The state of each, from one reading of the file."""
        known = self._read()["exercises"]
        return {one.name: self._state(one, known.get(one.name)) for one in exercises}

    def _state(self, exercise: Exercise, entry: dict | None) -> str:
        try:
            content = content_of(exercise)
        except UserError:
            return CHANGED  # something odd is there: checking it says what
        if content is None:
            return MISSING
        if entry and entry.get("digest") == digest_of(exercise, content):
            status = entry.get("status")
            return status if status in (RIGHT, NOT_FULLY) else WRONG
        return NOT_STARTED if is_untouched(exercise, content) else CHANGED

    def next(
        self, catalog: list[Exercise], after: Exercise | None = None
    ) -> Exercise | None:
        """The first exercise with something left to do, beginning after ``after``.

        What could not be checked fully here, and has nothing wrong, is not left to do.
        """
        start = catalog.index(after) + 1 if after in catalog else 0
        states = self.states(catalog)
        for exercise in catalog[start:] + catalog[:start]:
            if states[exercise.name] not in (RIGHT, NOT_FULLY):
                return exercise
        return None

    def record(self, exercise: Exercise, digest: str, status: str, kind: str) -> None:
        """Remember the verdict on the content that ``digest`` names."""
        if status not in (RIGHT, NOT_FULLY, WRONG):
            return
        with self._changing() as data:
            entry = {"digest": digest, "status": status, "verdict": kind}
            data["exercises"][exercise.name] = entry

    def hints_shown(self, exercise: Exercise) -> int:
        shown = self._read()["hints"].get(exercise.name, 0)
        return shown if isinstance(shown, int) else 0

    def show_hint(self, exercise: Exercise) -> int:
        """Count one more hint, as far as there are any; the new number shown."""
        with self._changing() as data:
            before = data["hints"].get(exercise.name, 0)
            before = before if isinstance(before, int) else 0
            shown = min(before + 1, len(exercise.hints))
            data["hints"][exercise.name] = shown
        return shown

    def forget(self, exercise: Exercise) -> None:
        """Begin again: no verdict, no hint shown."""
        with self._changing() as data:
            data["exercises"].pop(exercise.name, None)
            data["hints"].pop(exercise.name, None)

    def back_up(self, exercise: Exercise, content: bytes) -> Path:
        """Keep the learner's version under the next free number; where it is."""
        folder = self.folder / "backup"
        number = 1
        try:
            folder.mkdir(parents=True, exist_ok=True)
            while True:
                path = folder / f"{exercise.name}.{number}{exercise.suffix}"
                try:
                    with open(path, "xb") as file:
                        file.write(content)
                    return path
                except FileExistsError:
                    number += 1
        except OSError as error:
            raise UserError(
                f"cannot keep a copy of your file in {folder}: {error.strerror}; "
                "nothing was changed"
            ) from error

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict]:
        """Read, let the caller change, write: one process at a time."""
        try:
            self.folder.mkdir(exist_ok=True)
            with open(self.folder / "lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                data = self._read()
                yield data
                write_atomically(self.path, json.dumps(data, indent=1) + "\n")
        except OSError as error:
            raise UserError(
                f"cannot keep your progress in {self.folder}: {error.strerror}"
            ) from error

    def _read(self) -> dict:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if _is_sound(data):
                return data
        except (FileNotFoundError, NotADirectoryError):
            return _empty()
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror}") from error
        except (ValueError, RecursionError):  # not JSON, not UTF-8
            pass
        self._set_aside()
        return _empty()

    def _set_aside(self) -> None:
        names = (f".damaged-{number}" for number in itertools.count(1))
        asides = map(self.path.with_suffix, names)
        aside = next(path for path in asides if not path.exists())
        try:
            os.replace(self.path, aside)
        except FileNotFoundError:
            return  # another terminal has just set it aside
        except OSError as error:
            raise UserError(
                f"{self.path} is damaged and cannot be moved: {error.strerror}"
            ) from error
        self.say(
            f"{self.path.name} was damaged: it is kept as {aside.name}, and progress "
            "starts afresh (workshop check --all finds again what is right)"
        )


def _empty() -> dict:
    return {"version": 1, "exercises": {}, "hints": {}}


def _is_sound(data: object) -> bool:
    return (
        isinstance(data, dict)
        and isinstance(data.get("exercises"), dict)
        and isinstance(data.get("hints"), dict)
        and all(isinstance(entry, dict) for entry in data["exercises"].values())
    )
