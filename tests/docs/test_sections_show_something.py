"""Each section of a lesson shows code, a figure or a table that stands open.

A page is read without unfolding anything: what stands in a closed box doesn't count.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import LESSONS, ROOT
from workshop.lesson_pages import parts_of

PROJECT = "20_capstone"  # instructions, not a lesson
TELL = {"Common mistakes", "Further reading", "Key points"}
SHOWING = re.compile(
    r" *\.\. (?:causes|code-block|common-mistakes|failures|figure|literalinclude|"
    r"list-table|math|play|table|transcript)::"
)
# tables that are drawn: by lines of ===, and by boxes of +---+
SIMPLE_TABLE = re.compile(r" *=+ +=")
GRID_TABLE = re.compile(r" *\+[-=]+\+")
BOX = re.compile(r"( *)\.\. admonition::")
SHORT = 60  # words: an introduction to the sections below it


def sections(page: Path) -> dict[str, list[str]]:
    """Heading -> the lines below it, up to the next heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found: dict[str, list[str]] = {}
    heading = ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        underlined = re.fullmatch(r"=+|-+", below) and len(below) >= len(line) > 0
        if underlined and not line.startswith(" "):
            heading = line
            found[heading] = []
        elif heading:
            found[heading].append(line)
    return found


def open_lines(lines: list[str]) -> list[str]:
    """Those outside of closed boxes."""
    left: list[str] = []
    closed_at: int | None = None  # spaces before the box
    for number, line in enumerate(lines):
        spaces = len(line) - len(line.lstrip())
        if closed_at is not None and (not line.strip() or spaces > closed_at):
            continue
        closed_at = None
        box = BOX.match(line)
        if box and ":collapsible: closed" in " ".join(lines[number + 1 : number + 4]):
            closed_at = len(box[1])
            continue
        left.append(line)
    return left


def shows(lines: list[str]) -> bool:
    kinds = (SHOWING, SIMPLE_TABLE, GRID_TABLE)
    return any(kind.match(line) for kind in kinds for line in lines)


def test_what_is_closed_does_not_count():
    table = [".. list-table::", "", "   * - a"]
    box = [".. admonition:: More", "   :class: solution", "   :collapsible: closed", ""]
    inside = [f"   {line}" for line in table]
    assert shows(open_lines(table))
    assert not shows(open_lines([*box, *inside]))
    assert shows(open_lines([*box, *inside, "", *table]))


@pytest.mark.parametrize("lesson", [name for name in LESSONS if name != PROJECT])
def test_every_section_shows_code_a_figure_or_a_table(lesson):
    bare = [
        f"{page.name}: {heading}"
        for page in parts_of(ROOT, lesson)
        for heading, lines in sections(page).items()
        if heading not in TELL
        and len(" ".join(open_lines(lines)).split()) > SHORT
        and not shows(open_lines(lines))
    ]
    assert not bare, f"show code, a figure or a table, in no closed box: {bare}"
