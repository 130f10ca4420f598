"""The checks are themselves checked: right answers pass, known mistakes fail.

Every file of ``tests/exercises/right`` must pass, every file of
``tests/exercises/mistakes`` must get the verdict and the words that its first
line promises, and every skeleton must be "not started" and differ from its solution in
the holes alone. A first line may say for which torch it holds, as in
``# wrong value, torch>=2.9: words``; with another one the answer is skipped.

`make test` runs the answers that :mod:`tests.grader.chosen_answers` chooses, `make
test FULL=1` all of them. Answers that are job scripts need a practice cluster; without
one they are skipped, and what is left to test is that none of them is called right.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tests.grader.chosen_answers import (
    ANSWERS,
    ROOT,
    choose,
    remembered,
    right_answers,
    wrong_answers,
)
from workshop.catalog import Exercise, load_catalog
from workshop.cluster import nodes
from workshop.cluster.jobs.cluster_of_checks import NO_CLUSTER, ClusterOfChecks
from workshop.grader.checks import SEEDS, Check, checks_in
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind
from workshop.skeleton import holes, parse, skeleton_text, with_answers
from workshop.versions import installed_torch, is_older

CATALOG = load_catalog(ROOT)
BY_NAME = {exercise.name: exercise for exercise in CATALOG}
JOB_SCRIPTS = (".sbatch", ".pbs")
CAUGHT_BY = remembered("caught_by")
CHOSEN = choose(CATALOG)
FULL = bool(os.environ.get("WORKSHOP_FULL"))
TORCH_RANGE = re.compile(r", torch([<>=!][^:]*)(?=:)")
HEADING = re.compile(r"^# \[answer (\d+)\]\s*$", re.MULTILINE)


def chosen_or_full(paths: list[Path]) -> list:
    """Parameters; what `make test` does not run is marked ``full``."""
    return [
        pytest.param(path, id=ids(path))
        if path in CHOSEN
        else pytest.param(path, id=ids(path), marks=pytest.mark.full)
        for path in paths
    ]


def ids(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def split_answer(path: Path) -> tuple[str, dict[int, str]]:
    """(the first line's text, answers by hole number) of an answer file."""
    first, _, body = path.read_text(encoding="utf-8").partition("\n")
    pieces = HEADING.split(body)
    if len(pieces) == 1:
        return first.removeprefix("#").strip(), {1: body}
    numbers, codes = pieces[1::2], pieces[2::2]
    answers = {int(n): code for n, code in zip(numbers, codes, strict=True)}
    return first.removeprefix("#").strip(), answers


def skip_with_another_torch(exercise: Exercise, promise: str) -> str:
    """The promise without the range of torch for which it holds."""
    torch = installed_torch() or "0"
    if is_older(torch, exercise.torch or "0"):
        pytest.skip(f"{exercise.name} needs torch {exercise.torch}, this is {torch}")
    found = TORCH_RANGE.search(promise)
    if found is None:
        return promise
    if not SpecifierSet(found[1]).contains(torch, prereleases=True):
        pytest.skip(f"holds for torch{found[1]}, this is {torch}")
    return promise.replace(found[0], "", 1)


def checks_of_right(path: Path) -> list[Check]:
    """Each check once; its world size changes from answer to answer of an exercise."""
    place = sorted(path.parent.iterdir()).index(path)
    runs: dict[str, list[Check]] = {}
    for check in checks_in(BY_NAME[path.parent.name].checks, SEEDS[1:]):
        runs.setdefault(check.function, []).append(check)
    return [sizes[place % len(sizes)] for sizes in runs.values()]


def grade_answer(
    engine: Engine, path: Path, tmp_path: Path, checks: list[Check] | None = None
):
    exercise = BY_NAME[path.parent.name]
    promise, answers = split_answer(path)
    promise = skip_with_another_torch(exercise, promise)
    text = with_answers(exercise.solution.read_text(), answers)
    file = tmp_path / exercise.file
    file.write_text(text)
    return promise, engine.grade(exercise, file, checks)


@cache
def no_cluster() -> str:
    """Why job scripts can't be submitted here, with the cure; "" if they can."""
    return "; ".join(nodes.missing())


def skip_without_cluster(path: Path) -> None:
    if path.suffix in JOB_SCRIPTS and no_cluster():
        pytest.skip(no_cluster())


RIGHT = [path for exercise in CATALOG for path in right_answers(exercise.name)]
WRONG = [path for exercise in CATALOG for path in wrong_answers(exercise.name)]
JOBS = [path for path in RIGHT + WRONG if path.suffix in JOB_SCRIPTS]


@pytest.mark.parametrize("path", chosen_or_full(RIGHT))
def test_differently_written_right_answer_passes(engine, path, tmp_path):
    skip_without_cluster(path)
    _, result = grade_answer(engine, path, tmp_path, checks_of_right(path))
    assert result.passed, result.verdict.message


def grade_mistake(engine: Engine, path: Path, tmp_path: Path, report):
    """As :func:`grade_answer`; reports the check that caught it."""
    checks = checks_in(BY_NAME[path.parent.name].checks, SEEDS)
    usual = [check for check in checks if check.id == CAUGHT_BY.get(ids(path))]
    for some in (checks,) if FULL or not usual else (usual, checks):
        promise, result = grade_answer(engine, path, tmp_path, some)
        if not result.passed:
            break
    report("caught by", some[len(result.verdicts) - 1].id)
    return promise, result


@pytest.mark.parametrize("path", chosen_or_full(WRONG))
def test_known_mistake_gets_the_verdict_it_promises(
    engine, path, tmp_path, record_property
):
    skip_without_cluster(path)
    promise, result = grade_mistake(engine, path, tmp_path, record_property)
    kind, _, words = promise.partition(":")
    message = result.verdict.message
    assert Kind(kind.strip()) is not Kind.RIGHT, "a mistake must promise a failure"
    assert result.verdict.kind is Kind(kind.strip()), f"{promise}\n{message}"
    wanted = [word.strip().lower() for word in words.split("|") if word.strip()]
    assert wanted, f"{ids(path)} promises no words"
    missing = [word for word in wanted if word not in message.lower()]
    assert not missing, f"the message lacks {missing}:\n{message}"
    suspicions = [x.lower() for x in message.splitlines() if x.startswith("looks like")]
    for said in suspicions:  # which sends somebody somewhere: on purpose, that way
        promised = any(word in said for word in wanted)
        assert promised, f"{ids(path)} promises no word of: {said}"


@pytest.fixture(scope="module")
def engine_on_paper():
    """An engine on a machine that has no practice cluster."""
    with Engine() as engine:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(NO_CLUSTER, "1")
            engine._cluster = ClusterOfChecks(None)
        yield engine


@pytest.mark.parametrize("path", chosen_or_full(JOBS))
def test_without_a_cluster_no_job_script_is_called_right(
    engine_on_paper, path, tmp_path
):
    """Nothing is found wrong in a right one; a wrong one may be found, or not."""
    promise, result = grade_answer(engine_on_paper, path, tmp_path)
    allowed = {Kind.NOT_FULLY}
    if path in WRONG:
        allowed |= set(Kind) - {Kind.RIGHT, Kind.ENVIRONMENT}
    assert result.verdict.kind in allowed, f"{promise}\n{result.verdict.message}"


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
        "write it again with `python tools/skeletons.py`"
    )


@pytest.mark.parametrize("exercise", CATALOG, ids=lambda e: e.name)
def test_exercise_has_the_promised_form(exercise: Exercise):
    marked = holes(parse(exercise.solution.read_text()))
    assert 1 <= len(marked) <= 3
    assert all(1 <= len(hole.answer) <= 14 for hole in marked)
    assert len(exercise.hints) == 3
    assert (ROOT / exercise.page).is_file()
    skeleton = exercise.path.read_text()
    assert f"workshop check {exercise.name}" in skeleton
    assert exercise.lesson in skeleton
    for hole in marked:
        assert f"TODO {hole.number} of {len(marked)}" in skeleton


@pytest.mark.parametrize("exercise", CATALOG, ids=lambda e: e.name)
def test_exercise_has_one_right_and_five_wrong_answers(exercise: Exercise):
    assert len(right_answers(exercise.name)) >= 1
    assert len(wrong_answers(exercise.name)) >= 5


def test_every_answer_belongs_to_an_exercise():
    folders = [*ANSWERS.glob("right/*"), *ANSWERS.glob("mistakes/*")]
    assert {folder.name for folder in folders} <= set(BY_NAME)
