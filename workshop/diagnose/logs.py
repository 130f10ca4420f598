"""The lines of somebody's logs, each with the rank that wrote it, if that is known.

A rank is known by a mark before its lines (prefixes.py), by the folder that
torchrun's ``--log-dir`` made for it, or by the name of its file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from workshop.diagnose.kinds import tell_kinds
from workshop.diagnose.lines import Line
from workshop.diagnose.prefixes import (
    SPEAKER,
    Row,
    clean,
    is_of_several,
    ranks_named,
)
from workshop.diagnose.recorder import Record, rank_of, read_record
from workshop.diagnose.summary import with_quoted
from workshop.errors import UserError
from workshop.system.paths import shown_path

MOST = 64 * 1024 * 1024  # bytes of a file that are read: the last ones
PICKLE = b"\x80"  # the first byte
# rank_1.log, and not lora_rank8.log
OF_A_RANK = re.compile(
    r"(?!.*(?:lora|low))(?:.*[-_.])?(?:global[-_]?)?rank[-_.]?(\d{1,5})(?![\da-z])",
    re.IGNORECASE,
)
ATTEMPT = re.compile(r"^attempt_(\d+)$")


@dataclass(frozen=True)
class ErrorFile:
    """What ``@record`` left of one rank's exception."""

    place: str
    rank: int | None
    second: int
    message: str


@dataclass
class Log:
    """Everything that was given: lines in order, and torchrun's error files."""

    lines: list[Line]
    error_files: list[ErrorFile]
    files: int
    records: dict[int, Record] = field(default_factory=dict)  # flight recorder: rank ->
    seen: object = field(default=None, compare=False)  # what first.look read of it


def read_logs(names: Iterable[str]) -> Log:
    """All files, and all log folders of torchrun, in the order in which they are named.

    Raises:
        UserError: one is missing, can't be read, or isn't text.
    """
    log, ranks_before = Log([], [], 0), 0
    for name in names:
        path = Path(name)
        if name != "-" and path.is_dir():
            ranks_before += read_folder(log, path, ranks_before)
        elif name == "-":
            read_file(log, path, sys.stdin.read())
        elif not took_record(log, path):
            read_file(log, path, text_of(path))
    log.lines = tell_kinds(list(with_quoted(log.lines)))
    return log


def must_have_text(log: Log, names: Iterable[str]) -> None:
    """Refuse files that are all empty.

    Raises:
        UserError: there is nothing to read.
    """
    if any(line.text for line in log.lines) or log.error_files or log.records:
        return
    where = ", ".join(names)
    raise UserError(
        f"there is no text in {where}: the job may write its output elsewhere "
        "(#SBATCH --output and --error, #PBS -o and -e), or it hasn't begun"
    )


def took_record(log: Log, path: Path) -> bool:
    """Whether the file is a pickle of the flight recorder."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST) if file.read(1) == PICKLE else b""
    except OSError:
        return False  # text_of says why
    record = read_record(PICKLE + content) if content else None
    if record is None:
        return False
    log.files += 1
    log.records[rank_of(path, log.records)] = record
    return True


def text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MOST))
            content = file.read()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    head = content[:4096]
    if head.count(0) > len(head) // 20:  # a log that was cut can have a few
        raise UserError(f"{path} is not text: name a log, or torchrun's --log-dir")
    return content.decode("utf-8", "replace").replace("\0", "")


def read_file(log: Log, path: Path, text: str, rank: int | None = None) -> None:
    """One file: an error file if it looks like one, else lines."""
    log.files += 1
    error = error_in(path, text, rank) if path.suffix == ".json" else None
    if error:
        log.error_files.append(error)
        return
    rows = clean(text)
    rank = rank_of_file(path, rows) if rank is None else rank
    for number, row in enumerate(rows, 1):
        speaker = SPEAKER.search(row.text)
        said = int(speaker[1]) if speaker and row.rank is None else row.rank
        who = rank if said is None else said
        place = f"{shown_path(path)}:{number}"
        log.lines.append(
            Line(place, who, row.text, row.level, "", row.process, row.address)
        )


def rank_of_file(path: Path, rows: list[Row]) -> int | None:
    """The rank in a name such as rank_1.log, unless others write there, too."""
    named = OF_A_RANK.match(path.name)
    if named is None or any(is_of_several(row) for row in rows):
        return None
    rank = int(named[1])
    others = {other for row in rows for other in ranks_named(row)} - {rank}
    return None if others else rank


def error_in(path: Path, text: str, rank: int | None) -> ErrorFile | None:
    """What an ``error.json`` says; None if it isn't one, or was cut off."""
    if rank is None and path.parent.name.isdigit():
        rank = int(path.parent.name)
    try:
        said = json.loads(text)["message"]
        if isinstance(said, str):
            return ErrorFile(shown_path(path), rank, 0, said)
        second = int(said["extraInfo"]["timestamp"])
        return ErrorFile(shown_path(path), rank, second, str(said["message"]))
    except (ValueError, KeyError, TypeError):
        return None


def read_folder(log: Log, folder: Path, ranks_before: int) -> int:
    """The newest attempt in a --log-dir, or all files; returns its number of ranks."""
    attempts = [p for p in sorted(folder.rglob("attempt_*")) if ATTEMPT.match(p.name)]
    if not attempts and not any(p.name.isdigit() for p in folder.iterdir()):
        found = [p for p in sorted(folder.rglob("*")) if p.is_file()]
        if not found:
            raise UserError(f"there are no files in {folder}")
        for path in found:
            if not took_record(log, path):
                read_file(log, path, text_of(path))
        return 0
    newest: dict[Path, Path] = {}
    for path in attempts or [folder]:
        now = newest.setdefault(path.parent, path)
        newest[path.parent] = max(now, path, key=attempt_number)
    count = 0
    for attempt in newest.values():
        for place in (p for p in attempt.iterdir() if p.name.isdigit()):
            count += 1
            rank = ranks_before + int(place.name)
            for path in sorted(p for p in place.iterdir() if p.is_file()):
                read_file(log, path, text_of(path), rank)
    return count


def attempt_number(path: Path) -> int:
    found = ATTEMPT.match(path.name)
    return int(found[1]) if found else 0
