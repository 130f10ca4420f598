"""The points of a folder of evidence, and what is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from workshop.capstone import own_code
from workshop.capstone.evidence import MANIFEST, RUNS, Broken, Run, read_runs
from workshop.capstone.properties import PROPERTIES, Runs, distance
from workshop.capstone.unbroken import check_unbroken


@dataclass(frozen=True)
class Judged:
    """One property: its points, and what is missing, or ""."""

    name: str
    possible: int
    missing: str

    @property
    def points(self) -> int:
        return 0 if self.missing else self.possible


@dataclass(frozen=True)
class Judgment:
    """All properties, and why none was judged, or ""."""

    judged: list[Judged]
    broken: str
    ids: dict[str, str]  # of the runs, to compare them with those of others
    distance: str = ""  # of the runs' losses, or "" with one run
    code: str = ""  # the file that the runs used, in a sentence

    @property
    def points(self) -> int:
        return sum(each.points for each in self.judged)


def judge(folder: Path, root: Path) -> Judgment:
    """Read the evidence in ``folder``; ``root`` has the program.

    Raises:
        UserError: there is no evidence at all.
    """
    try:
        runs = read_runs(folder)
        check_unbroken(runs)
        ids = {name: run.started["run"] for name, run in runs.items()}
        one, *other = runs.values()
        apart = distance(Runs(one, other[0], root)) if other else ""
        code = own_code.told(one, root)
        return Judgment(ask_all(runs, root), "", ids, apart, code)
    except Broken as error:
        return Judgment(ask_nothing(), str(error), {})
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # a line has the right fields with wrong things in them
        why = f"A {MANIFEST} has values that the program doesn't write ({error!r})."
        return Judgment(ask_nothing(), why, {})


def ask_nothing() -> list[Judged]:
    why = "not judged"
    return [Judged(name, points, why) for name, (points, _) in PROPERTIES.items()]


def ask_all(runs: dict[str, Run], root: Path) -> list[Judged]:
    """Every property; a run that is missing is taken for the other one."""
    absent = next((name for name in RUNS if name not in runs), "")
    some = next(iter(runs.values()))
    one, other = (runs.get(name, some) for name in RUNS)
    both = Runs(one, other, root)
    judged = []
    for name, (points, missing) in PROPERTIES.items():
        sentence = missing(both)
        if absent and (not sentence or re.search(rf"\b{absent}", sentence)):
            sentence = f"There is no {absent} run yet."
        judged.append(Judged(name, points, sentence))
    return judged
