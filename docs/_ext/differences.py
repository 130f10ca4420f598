"""What a reader is shown of the difference between two programs.

A difference of more than ``LONG`` lines leaves out imports and docstrings, and says so
below. Its hunks are numbered by the lines that are left. The pages fold it, which
``tests/docs/test_differences.py`` checks.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docutils import nodes

LONG = 40  # lines that a page shows without a fold
LEFT_OUT = "Imports and docstrings are left out."
HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
CONTEXT = 3  # unchanged lines around a change, as everywhere
# its number in either file, and the line as the difference has it
Line = tuple[dict[str, int], str]
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def unread(source: str) -> set[int]:
    """The numbers of the lines of a program that import or belong to a docstring."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node) is not None:
            found.update(_lines_of(node.body[0]))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(_lines_of(node))
    return found


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def essential(difference: str, before: str, after: str) -> str:
    """The difference of two programs without imports, docstrings and empty hunks."""
    unread_in = {"-": unread(before), "+": unread(after)}
    shown = difference.splitlines()[:2]
    for hunk in _hunks(difference):
        lines = [
            (place, line)
            for place, line in hunk
            if not any(place[side] in unread_in[side] for side in _sides(line))
        ]
        for part in _around_changes(lines):
            shown += [_title(part), *(line for _, line in part)]
    return "\n".join(shown) + "\n"


def _around_changes(lines: list[Line]) -> list[list[Line]]:
    """What stands within three lines of a change, in pieces without a gap."""
    changed = [
        number
        for number, (_, line) in enumerate(lines)
        if line[:1] in ("+", "-") and line[1:].strip()
    ]
    parts: list[list[Line]] = []
    last = -1
    for number, line in enumerate(lines):
        if any(abs(number - change) <= CONTEXT for change in changed):
            if not parts or number > last + 1:
                parts.append([])
            parts[-1].append(line)
            last = number
    return parts


def _hunks(difference: str) -> list[list[Line]]:
    """Each hunk's lines, with the number that each has or would have in either file."""
    hunks: list[list[Line]] = []
    place = {"-": 0, "+": 0}
    for line in difference.splitlines()[2:]:
        if start := HUNK.match(line):
            place = {"-": int(start[1]), "+": int(start[2])}
            hunks.append([])
            continue
        hunks[-1].append((dict(place), line))
        for side in _sides(line):
            place[side] += 1
    return hunks


def _sides(line: str) -> str:
    """The files that a line of a difference is in."""
    return line[0] if line[:1] in ("+", "-") else "-+"


def _title(lines: list[Line]) -> str:
    first = lines[0][0]
    ranges = (
        f"{side}{first[side]},{sum(side in _sides(line) for _, line in lines)}"
        for side in "-+"
    )
    return f"@@ {' '.join(ranges)} @@"


def leave_out(app, doctree: nodes.document) -> None:
    """Shorten what is long; runs while the listing still has the files' full paths."""
    for listing in list(doctree.findall(nodes.literal_block)):
        text = listing.astext()
        paths = re.findall(r"^(?:---|\+\+\+) (\S+\.py)", text, flags=re.M)[:2]
        if listing.get("language") != "udiff" or len(text.splitlines()) <= LONG:
            continue
        if len(paths) < 2:  # scripts of a shell have neither
            continue
        before, after = (Path(path).read_text(encoding="utf-8") for path in paths)
        listing.rawsource = essential(text, before, after)
        listing.children = [nodes.Text(listing.rawsource)]
        note = nodes.paragraph("", LEFT_OUT, classes=["left-out"])
        listing.parent.insert(listing.parent.index(listing) + 1, note)


def setup(app) -> dict:
    # before listings.py shortens the paths
    app.connect("doctree-read", leave_out, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
