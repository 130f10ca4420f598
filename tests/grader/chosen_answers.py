"""Which known answers `make test` runs: all that may have changed, two of the rest.

There are more than two thousand, and most changes touch none of them. All answers of
an exercise run if its files, or the grader, differ both from ``origin/main`` and from
the last time when all of them got their verdicts. Of each other exercise two mistakes
run, of two kinds if there are as many. No other right answer does: the exercise's
solution runs anyway, and where a mistake takes until the first check that finds it, a
right answer takes all checks. A job script is also judged without a scheduler, where no
right one may be called right, so a right answer of it runs too. ``make test FULL=1``
runs all.

A clone of what was published has nothing that differs. Where it's tested before that,
WORKSHOP_PUBLISHED names the commit that takes the place of ``origin/main``.

What is remembered between two runs lies in ``.workshop/cache``; without it, nothing is
wrong but the time that a run takes.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from workshop.author.answers import Answer, read_answers
from workshop.catalog import Exercise, load_catalog

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".workshop" / "cache" / "known_answers.json"
# what decides on every verdict; the commands only show it
GRADER = (
    *("workshop/grader/", "workshop/cluster/", "workshop/system/"),
    *("job_scripts/", "constraints.txt"),
)
READ = (".py", ".sh", ".sbatch", ".pbs", ".txt")
JOB_SCRIPTS = (".sbatch", ".pbs")
OVER_THE_LIMIT = "over the limit"
ENOUGH = 2  # mistakes in an exercise of which nothing has changed
PUBLISHED = "origin/main"


@cache
def answers_of(exercise: Exercise) -> tuple[Answer, ...]:
    """The known answers, right ones first."""
    answers = read_answers(exercise.answers, exercise.name)
    return tuple(sorted(answers, key=lambda answer: not answer.is_right))


def few(answers: Iterable[Answer]) -> list[Answer]:
    """The first mistake of each kind, then the next ones, until there are ENOUGH.

    None that is told to have gone over its limit: it takes the whole limit to be so.
    """
    left_out = ("right", OVER_THE_LIMIT)
    answers = [answer for answer in answers if answer.kind not in left_out]
    first_of: dict[str, Answer] = {}
    for answer in answers:
        first_of.setdefault(answer.kind, answer)
    first = list(first_of.values())
    others = [answer for answer in answers if answer not in first]
    return [*first, *others][:ENOUGH]


def first_right(exercise: Exercise) -> list[Answer]:
    """A right answer of a job script, which is judged on paper, too."""
    if exercise.suffix not in JOB_SCRIPTS:
        return []
    return [answer for answer in answers_of(exercise) if answer.is_right][:1]


def choose(exercises: Iterable[Exercise]) -> set[str]:
    """The ids of the answers that `make test` runs."""
    green = remembered("green")
    changed = changed_files()
    chosen: set[str] = set()
    for exercise in exercises:
        answers = answers_of(exercise)
        may_differ = changed & files_of(exercise) or any(map(of_grader, changed))
        if may_differ and green.get(exercise.name) != digest(exercise):
            chosen.update(answer.id for answer in answers)
        else:
            unchanged = [*first_right(exercise), *few(answers)]
            chosen.update(answer.id for answer in unchanged)
    return chosen


def of_grader(file: str) -> bool:
    """Whether every verdict may depend on this file."""
    return file.startswith(GRADER)


def files_of(exercise: Exercise) -> set[str]:
    """The exercise, its solution, its checks, its answers, seen from the root."""
    paths = [exercise.path, exercise.solution, exercise.checks, exercise.answers]
    return {str(path.relative_to(ROOT)) for path in paths}


def changed_files() -> set[str]:
    """What differs from what is published, also uncommitted; empty if there is nothing.

    A folder that is no clone, or a clone without that branch, was published as it is.
    """
    published = os.environ.get("WORKSHOP_PUBLISHED", PUBLISHED)
    differ = ["git", "diff", "--name-only", "--no-renames", published, "--"]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    found: set[str] = set()
    for command in (differ, new):
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        except OSError:
            return set()
        if done.returncode:
            return set()
        found.update(done.stdout.splitlines())
    return found


def digest(exercise: Exercise) -> str:
    """Names the contents of all files that the verdicts on its answers depend on."""
    total = hashlib.sha256(_digest_of_grader().encode())
    for name in sorted(files_of(exercise)):
        total.update(f"\0{name}\0".encode() + (ROOT / name).read_bytes())
    return total.hexdigest()


def _digest_of_grader() -> str:
    total = hashlib.sha256()
    for part in GRADER:
        for path in sorted([ROOT / part, *(ROOT / part).rglob("*")]):
            name = str(path.relative_to(ROOT))
            if path.suffix in READ and of_grader(name):
                total.update(f"\0{name}\0".encode() + path.read_bytes())
    return total.hexdigest()


def remembered(what: str) -> dict[str, str]:
    """``green``: exercise -> digest; ``caught_by``: answer -> id of a check."""
    try:
        found = json.loads(CACHE.read_text(encoding="utf-8"))[what]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def remember_run(cases: Iterable[ElementTree.Element]) -> None:
    """Keep what a run of test_known_answers.py showed, from its JUnit test cases.

    An exercise is green if all of its answers that were to run did, and passed.
    """
    bad: set[str] = set()
    seen: set[str] = set()
    caught_by: dict[str, str] = {}
    for case in cases:
        answer = case.get("name", "").partition("[")[2].removesuffix("]")
        exercise = answer.partition("/")[0]
        seen.add(exercise)
        if any(case.find(tag) is not None for tag in ("failure", "error", "skipped")):
            bad.add(exercise)
        for entry in case.iter("property"):
            if entry.get("name") == "caught by":
                caught_by[answer] = entry.get("value", "")
    catalog = [one for one in load_catalog(ROOT) if one.name in seen - bad]
    remember({exercise.name: digest(exercise) for exercise in catalog}, caught_by)


def remember(green: dict[str, str], caught_by: dict[str, str]) -> None:
    """Add to what is remembered."""
    kept = {
        "green": remembered("green") | green,
        "caught_by": remembered("caught_by") | caught_by,
    }
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    CACHE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
