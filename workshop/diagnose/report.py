"""What ``workshop diagnose`` prints: first rank, cause, cure, and where to read.

It never claims more than the log shows: if several causes fit, it says so.
"""

from __future__ import annotations

import re
from pathlib import Path

from workshop.diagnose.causes import PAGE, SURE, WARNING, Found, candidates, load
from workshop.diagnose.first import (
    CONSEQUENCE,
    OF_LAUNCHERS,
    First,
    first_failed,
    is_consequence,
    is_own_error,
    listed,
)
from workshop.diagnose.logs import Line, Log

ERROR = re.compile(r"(?i:\b(?:error|failed|fatal)\b)|\bKilled\b")
REST = (ERROR, CONSEQUENCE, re.compile("Traceback"))  # what to quote, best first
PROMPT = re.compile(r"^\$ ")  # a command that somebody typed
LONGEST = 160  # characters of a quoted line
MOST_LINES = 4
NOTHING = (
    ", nor in their numbers. If the run is slow or wrong, its questions are in "
    f'{PAGE}, "Is slow" and "Runs and is wrong"'
)
LOST = "This log only says that another rank has left. Read those of the other ranks:"


def diagnose(log: Log, root: Path) -> tuple[list[str], bool]:
    """(what to print, whether one cause is named)."""
    first = first_failed(log)
    found = candidates(load(root), log, first)
    error = first_error(log)
    if not found and not first and error and is_consequence(error.text):
        return [LOST, f"    {quote(error)}"], False
    if not found and not first and not error:
        lines, files = len(log.lines), log.files
        looked = f"{lines:,} line{'s' * (lines != 1)}"
        where = f" of {files} files" if files > 1 else ""
        return [f"No failure found in {looked}{where}{NOTHING}"], False
    sure = named(found)
    told = tell_first(first, found)
    if sure:
        return told + tell(sure), True
    if found:
        return told + tell_unsure(found), False
    return told + tell_unknown(error), False


def named(found: list[Found]) -> Found | None:
    """The one cause that is sure, if there is exactly one."""
    sure = [f for f in found if f.weight == SURE]
    of_first = [f for f in sure if f.by_first]
    if len(sure) == 1:
        return sure[0]
    return of_first[0] if len(of_first) == 1 else None


def tell_first(first: First | None, found: list[Found]) -> list[str]:
    if first is None and found and found[0].quiet:
        suspect = next((f.suspect for f in found if f.suspect), None)
        return ["No rank reports an error."] + (
            tell_first(suspect, []) if suspect else []
        )
    if first is None:
        return ["First to fail: the log doesn't say"]
    if not first.ranks:
        return [f"First to fail: no single rank ({first.reason})"]
    head = "First to fail" if first.sure else "Suspect"
    return [f"{head}: {listed(first.ranks)} ({first.reason})"]


def tell(found: Found) -> list[str]:
    cause = found.cause
    lines = [f"Cause: {cause.title}"]
    lines += [f"    {quote(line)}" for line in found.lines[:MOST_LINES]]
    if len(cause.gallery) > 1:
        lines.append(f"Ask: {cause.ask}")
    lines += [f"Cure: {cause.cure}", f"Read: {cause.read}"]
    return lines + see(found, "See it fail here")


def see(found: Found, words: str) -> list[str]:
    """The command that runs what the gallery has of a cause."""
    name, *others = found.cause.gallery or ("",)
    rest = f" (or {', '.join(others)})" if others else ""
    return [f"{words}: python src/19_gallery.py {name}{rest}"] if name else []


def tell_unsure(found: list[Found]) -> list[str]:
    lines = ["Not sure of the cause. It looks like:"]
    for each in found[:2]:
        shown = each.lines[: 2 if each.quiet else 1]
        lines += [f"  - {each.cause.title}", *(f"    {quote(line)}" for line in shown)]
        lines += [f"    Ask: {each.cause.ask}", f"    Read: {each.cause.read}"]
        lines += see(each, "    See it fail")
    return lines


def tell_unknown(error: Line | None) -> list[str]:
    lines = ["No known cause matches."]
    if error:
        lines += ["The first error in the log:", f"    {quote(error)}"]
    return [*lines, f'Read on: {PAGE}, "Find out which rank, and where"']


def first_error(log: Log) -> Line | None:
    """The first exception of its own, else a line about an error or a lost rank."""
    rest: dict[re.Pattern[str], Line] = {}
    for line in log.lines:
        if any(each.search(line.text) for each in (WARNING, OF_LAUNCHERS, PROMPT)):
            continue
        if is_own_error(line.text):
            return line
        for pattern in REST:
            if pattern.search(line.text):
                rest.setdefault(pattern, line)
    files = [Line(f.place, f.rank, f.message) for f in log.error_files]
    left = (rest[pattern] for pattern in REST if pattern in rest)
    return next((f for f in files if not is_consequence(f.text)), next(left, None))


def quote(line: Line) -> str:
    who = "" if line.rank is None else f"rank {line.rank}: "
    text = " ".join(line.text.split())
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return f"{line.place}  {who}{cut}"
