"""``workshop dev``: commands for those who write exercises."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workshop.catalog import (
    Exercise,
    find_exercise,
    find_root,
    load_catalog,
)
from workshop.system.paths import shown_path
from workshop.versions import installed_torch, is_older

if TYPE_CHECKING:
    from workshop.author.answers import Answer
    from workshop.grader.engine.engine import Engine


@click.group()
def dev() -> None:
    """Write exercises: make one, check it, derive it from its solution."""


@dev.command()
@click.argument("name")
@click.option(
    "--lesson", default="", metavar="NN_NAME", help="The page that explains it."
)
def new(name: str, lesson: str) -> None:
    """Make a whole new exercise NAME, to be edited.

    It has a solution, checks, known answers and an entry in the catalog. They are those
    of an example, so that `workshop dev check NAME` succeeds from the beginning.
    """
    from workshop.author.new import make_new

    for path in make_new(find_root(), name, lesson):
        click.echo(f"written: {shown_path(path)}")
    click.echo(f"Edit them, then: workshop dev check {name}")


@dev.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def check(names: tuple[str, ...]) -> int:
    """Check all that belongs to an exercise.

    Skeleton, solution, every known answer, and the page. Exit status: 0 all as it must
    be, 1 not.
    """
    catalog = load_catalog(find_root())
    exercises = [find_exercise(catalog, name) for name in names]
    sound = [_check(exercise) for exercise in exercises]
    return 0 if all(sound) else 1


@dev.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
def skeletons(names: tuple[str, ...]) -> None:
    """Write exercises/NAME from solutions/NAME; without NAME, all.

    A file in which a hole was already filled is somebody's work and is left alone.
    """
    from workshop.author.skeletons import write_skeleton

    catalog = load_catalog(find_root())
    chosen = [find_exercise(catalog, name) for name in names] or catalog
    for exercise in chosen:
        click.echo(f"{exercise.file}: {write_skeleton(exercise)}")


def _check(exercise: Exercise) -> bool:
    from workshop.author.answers import read_answers
    from workshop.author.form import problems
    from workshop.author.skeletons import write_skeleton
    from workshop.grader.engine.engine import Engine

    click.echo(exercise.name)
    click.echo(f"  exercise: {write_skeleton(exercise)}")
    answers = read_answers(exercise.answers, exercise.name)
    faults = problems(exercise, answers)
    with Engine() as engine:
        result = engine.grade(exercise, exercise.path)
        if result.status != "not started":
            faults.append(f"the skeleton is {result.status!r}, not 'not started'")
        result = engine.grade(exercise, exercise.solution)
        click.echo(f"  solution: {result.status}, {len(result.verdicts)} checks")
        if not result.passed:
            faults.append(f"the solution is not right:\n{result.verdict.message}")
        faults += _broken_promises(engine, exercise, answers)
    for fault in faults:
        indented = fault.replace("\n", "\n      ")
        click.echo(f"  fault: {indented}")
    return not faults


def _broken_promises(
    engine: Engine, exercise: Exercise, answers: list[Answer]
) -> list[str]:
    from workshop.author.promises import broken_promise, grade_answer

    torch = installed_torch() or "0"
    if is_older(torch, exercise.torch or "0"):
        click.echo(f"  answers: not tried, they need torch {exercise.torch}")
        return []
    faults = []
    tried: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for answer in answers:
            if not answer.holds_for(torch):
                tried[f"for torch{answer.torch} not tried"] += 1
                continue
            result = grade_answer(engine, exercise, answer, Path(folder))
            broken = broken_promise(answer, result)
            if broken:
                faults.append(f"{answer.name}: {broken}")
            tried["right" if answer.is_right else "wrong"] += 1
    counts = ", ".join(f"{count} {what}" for what, count in tried.items())
    click.echo(f"  answers: {counts}; {len(faults)} not as promised")
    return faults
