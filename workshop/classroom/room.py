"""What an instructor wants to know of a gradebook: who is where, what goes wrong."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from workshop.classroom.book import NOT_GRADED, Cell, Gradebook, Row

CLASSIC = "looks like: "  # begins the line of a message that names a classic mistake
RANKS = re.compile(r"^ranks? [\d, and]+: ")
NAMED = re.compile(r"^\s+ranks? [\d, and]+: (is .*?); got ", re.MULTILINE)
UNTOUCHED = ("not started", NOT_GRADED)


class Mistake(NamedTuple):
    """What several learners have in common at one exercise."""

    exercise: str
    verdict: str
    text: str  # the classic mistake, or the first line of the message
    learners: list[str]


def place(row: Row) -> Cell | None:
    """The last exercise that this learner has begun, in the order of the catalog."""
    begun = [cell for cell in row.cells if cell.status not in UNTOUCHED]
    return begun[-1] if begun else None


def touched(book: Gradebook) -> list[int]:
    """The numbers, in the catalog, of the exercises that somebody has begun."""
    found = {
        number
        for row in book.rows
        for number, cell in enumerate(row.cells)
        if cell.status not in UNTOUCHED
    }
    return sorted(found)


def classic_of(cell: Cell) -> str:
    """The classic mistake that the grader suspects, or ""."""
    lines = [line.strip() for line in cell.message.splitlines()]
    named = [line for line in lines if line.startswith(CLASSIC)]
    return named[0].removeprefix(CLASSIC) if named else ""


def told(cell: Cell) -> str:
    """The classic mistake, else the first line without what differs by learner."""
    first = cell.message.strip().partition("\n")[0].removeprefix(f"{cell.verdict}: ")
    named = NAMED.search(cell.message)
    other = " has another value" if cell.verdict == "wrong value" else ""
    what = RANKS.sub("", first) + (f" {named[1]}" if named else other)
    return classic_of(cell) or what


def common_mistakes(book: Gradebook) -> list[Mistake]:
    """By exercise, verdict and text; the most frequent first, then by the catalog."""
    found: dict[tuple[int, str, str], list[str]] = {}
    for row in book.rows:
        for number, cell in enumerate(row.cells):
            if cell.status == "wrong":
                key = (number, cell.verdict, told(cell))
                found.setdefault(key, []).append(row.learner)
    order = sorted(found, key=lambda key: (-len(found[key]), key))
    names = [exercise.name for exercise in book.catalog]
    return [Mistake(names[key[0]], key[1], key[2], found[key]) for key in order]


def _most_common(names: list[str]) -> list[tuple[str, int]]:
    counts = Counter(names)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def verdicts(book: Gradebook) -> list[tuple[str, int]]:
    """How many wrong answers have which verdict."""
    return _most_common([c.verdict for c in book.cells if c.status == "wrong"])


def classics(book: Gradebook) -> list[tuple[str, int]]:
    """How many wrong answers resemble which classic mistake, over all exercises."""
    wrong = [classic_of(cell) for cell in book.cells if cell.status == "wrong"]
    return _most_common([name for name in wrong if name])
