"""The answers of many learners, what became of each, and their sums."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from workshop.catalog import Exercise

NOT_GRADED = "not graded"
UNREADABLE = "unreadable"
ENVIRONMENT = "environment"
NOT_FULLY = "not fully checked"
COUNTED = ("right", NOT_FULLY, "wrong", "not started")


@dataclass
class Cell:
    """One learner's answer to one exercise, and what became of it."""

    exercise: Exercise
    content: bytes | None = None
    status: str = NOT_GRADED
    verdict: str = ""
    message: str = ""
    seconds: float = 0.0

    @property
    def points(self) -> int:
        return self.exercise.points if self.status == "right" else 0


@dataclass
class Row:
    """One learner."""

    learner: str
    folder: Path
    cells: list[Cell]
    remarks: list[str] = field(default_factory=list)

    @property
    def points(self) -> int:
        return sum(cell.points for cell in self.cells)

    @property
    def possible(self) -> int:
        return sum(cell.exercise.points for cell in self.cells)

    def counts(self) -> Counter:
        return _counts(self.cells)

    def notes(self) -> list[str]:
        """Sentences on what could not be graded, and remarks on the folder."""
        told = [
            f"{cell.exercise.name}: {_first_sentence(cell)}"
            for cell in self.cells
            if cell.status in (UNREADABLE, ENVIRONMENT, NOT_FULLY) and cell.message
        ]
        return self.remarks + told


class Gradebook:
    """The rows, and what can be said about all of them."""

    def __init__(self, catalog: list[Exercise], rows: list[Row]):
        self.catalog, self.rows = catalog, rows

    @property
    def cells(self) -> list[Cell]:
        return [cell for row in self.rows for cell in row.cells]

    @property
    def total(self) -> int:
        return len(self.cells)

    @property
    def graded(self) -> int:
        return sum(cell.status != NOT_GRADED for cell in self.cells)

    @property
    def environment_broken(self) -> bool:
        return any(cell.status == ENVIRONMENT for cell in self.cells)

    def by_exercise(self) -> list[tuple[str, Counter, str]]:
        """(name, counts, the most common bad verdict) for each exercise."""
        found = []
        for number, exercise in enumerate(self.catalog):
            cells = [row.cells[number] for row in self.rows]
            bad = Counter(cell.verdict for cell in cells if cell.status == "wrong")
            common = bad.most_common(1)[0][0] if bad else ""
            found.append((exercise.name, _counts(cells), common))
        return found


def _first_sentence(cell: Cell) -> str:
    """The first line; of what could not be tried here also the reason and the cure."""
    first, *more = cell.message.splitlines()
    if cell.status == NOT_FULLY:
        return " ".join([first, *(line.strip() for line in more)])
    return first


def _counts(cells: list[Cell]) -> Counter:
    counts: Counter = Counter()
    for cell in cells:
        status = cell.status if cell.status in COUNTED else "other"
        counts[status] += 1
    return counts
