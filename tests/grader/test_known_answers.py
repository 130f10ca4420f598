"""The checks are themselves checked: right answers pass, known mistakes fail.

Each answer of ``tests/exercises/*/answers.md`` must get the verdict and the words that
its heading promises (:mod:`workshop.author.answers`), and every skeleton must be "not
started" and differ from its solution in the holes alone.

`make test` runs the answers that :mod:`tests.grader.chosen_answers` chooses, `make
test FULL=1` all of them. Answers that are job scripts need a practice cluster; without
one they are skipped, and what is left to test is that none of them is called right.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from tests.grader.chosen_answers import (
    JOB_SCRIPTS,
    ROOT,
    answers_of,
    choose,
    remembered,
)
from workshop.author.answers import Answer
from workshop.author.form import problems
from workshop.author.promises import broken_promise, grade_answer
from workshop.catalog import Exercise, load_catalog
from workshop.cluster import nodes
from workshop.cluster.jobs.cluster_of_checks import NO_CLUSTER, ClusterOfChecks
from workshop.grader.checks import SEEDS, Check, checks_in
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind, Result
from workshop.skeleton import skeleton_text
from workshop.versions import installed_torch, is_older

CATALOG = load_catalog(ROOT)
BY_NAME = {exercise.name: exercise for exercise in CATALOG}
CAUGHT_BY = remembered("caught_by")
CHOSEN = choose(CATALOG)
FULL = bool(os.environ.get("WORKSHOP_FULL"))
KNOWN = [answer for exercise in CATALOG for answer in answers_of(exercise)]
RIGHT = [answer for answer in KNOWN if answer.is_right]
WRONG = [answer for answer in KNOWN if not answer.is_right]
JOBS = [a for a in KNOWN if BY_NAME[a.exercise].suffix in JOB_SCRIPTS]


def chosen_or(later: pytest.MarkDecorator, answers: list[Answer]) -> list:
    """Parameters; what `make test` does not run is marked for a longer run."""
    marks = {True: (), False: later}
    return [
        pytest.param(answer, id=answer.id, marks=marks[answer.id in CHOSEN])
        for answer in answers
    ]


def skip_with_another_torch(answer: Answer) -> None:
    needed = BY_NAME[answer.exercise].torch or "0"
    torch = installed_torch() or "0"
    if is_older(torch, needed):
        pytest.skip(f"{answer.exercise} needs torch {needed}, this is {torch}")
    if not answer.holds_for(torch):
        pytest.skip(f"holds for torch{answer.torch}, this is {torch}")


def checks_of_right(answer: Answer) -> list[Check]:
    """Each check once; its world size changes from answer to answer of an exercise."""
    exercise = BY_NAME[answer.exercise]
    place = answers_of(exercise).index(answer)
    runs: dict[str, list[Check]] = {}
    for check in checks_in(exercise.checks, SEEDS[1:]):
        runs.setdefault(check.function, []).append(check)
    return [sizes[place % len(sizes)] for sizes in runs.values()]


@cache
def no_cluster() -> str:
    """Why job scripts can't be submitted here, with the cure; "" if they can."""
    return "; ".join(nodes.missing())


def skip_without_cluster(answer: Answer) -> None:
    if answer in JOBS and no_cluster():
        pytest.skip(no_cluster())


@pytest.mark.parametrize("answer", chosen_or(pytest.mark.full, RIGHT))
def test_differently_written_right_answer_passes(engine, answer, tmp_path):
    skip_with_another_torch(answer)
    skip_without_cluster(answer)
    exercise, checks = BY_NAME[answer.exercise], checks_of_right(answer)
    result = grade_answer(engine, exercise, answer, tmp_path, checks)
    assert broken_promise(answer, result) == ""


def grade_mistake(engine: Engine, answer: Answer, tmp_path: Path, report) -> Result:
    """As :func:`grade_answer`; reports the check that caught it."""
    exercise = BY_NAME[answer.exercise]
    checks = checks_in(exercise.checks, SEEDS)
    usual = [check for check in checks if check.id == CAUGHT_BY.get(answer.id)]
    first = checks if FULL or not usual else usual
    result = grade_answer(engine, exercise, answer, tmp_path, first)
    if result.passed and first is not checks:
        first = checks
        result = grade_answer(engine, exercise, answer, tmp_path, checks)
    report("caught by", first[len(result.verdicts) - 1].id)
    return result


@pytest.mark.parametrize("answer", chosen_or(pytest.mark.full, WRONG))
def test_known_mistake_gets_the_verdict_it_promises(
    engine, answer, tmp_path, record_property
):
    skip_with_another_torch(answer)
    skip_without_cluster(answer)
    result = grade_mistake(engine, answer, tmp_path, record_property)
    assert broken_promise(answer, result) == ""


@pytest.fixture(scope="module")
def engine_on_paper():
    """An engine on a machine that has no practice cluster."""
    with Engine() as engine:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(NO_CLUSTER, "1")
            engine._cluster = ClusterOfChecks(None)
        yield engine


@pytest.mark.parametrize("answer", chosen_or(pytest.mark.nightly, JOBS))
def test_without_a_cluster_no_job_script_is_called_right(
    engine_on_paper, answer, tmp_path
):
    """Nothing is found wrong in a right one; a wrong one may be found, or not."""
    skip_with_another_torch(answer)
    exercise = BY_NAME[answer.exercise]
    result = grade_answer(engine_on_paper, exercise, answer, tmp_path)
    allowed = {Kind.NOT_FULLY}
    if not answer.is_right:
        allowed |= set(Kind) - {Kind.RIGHT, Kind.ENVIRONMENT}
    assert result.verdict.kind in allowed, f"{answer.id}\n{result.verdict.message}"


@pytest.mark.parametrize("exercise", CATALOG, ids=lambda e: e.name)
def test_skeleton_is_not_started(exercise: Exercise, engine, tmp_path):
    file = tmp_path / exercise.file
    solution = exercise.solution.read_text()
    file.write_text(skeleton_text(solution, exercise.suffix))
    assert engine.grade(exercise, file).status == "not started"


@pytest.mark.parametrize("exercise", CATALOG, ids=lambda e: e.name)
def test_exercise_in_the_repository_is_the_skeleton(exercise: Exercise):
    expected = skeleton_text(exercise.solution.read_text(), exercise.suffix)
    assert exercise.path.read_text() == expected, (
        f"{exercise.path.name} differs from its solution outside the holes: "
        "write it again with `workshop dev skeletons`"
    )


@pytest.mark.parametrize("exercise", CATALOG, ids=lambda e: e.name)
def test_exercise_has_the_promised_form(exercise: Exercise):
    assert problems(exercise, answers_of(exercise)) == []


def test_every_folder_belongs_to_an_exercise():
    folders = [path for path in (ROOT / "tests/exercises").iterdir() if path.is_dir()]
    found = {folder.name for folder in folders if folder.name != "__pycache__"}
    assert found == set(BY_NAME)
