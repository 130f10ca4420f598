"""The checks are themselves checked: right answers pass, known mistakes fail.

Every file of ``tests/exercises/right`` must pass, every file of
``tests/exercises/mistakes`` must get the verdict and the words that its first
line promises, and every skeleton must be "not started" and differ from its solution in
the holes alone. A first line may say for which torch it holds, as in
``# wrong value, torch>=2.9: words``; with another one the answer is skipped.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from grader.catalog import SUFFIXES, Exercise, load_catalog
from grader.checks import SEEDS, Check, checks_in
from grader.engine.engine import Engine
from grader.skeleton import holes, parse, skeleton_text, with_answers
from grader.verdicts.verdict import Kind
from grader.versions import installed_torch, is_older

ROOT = Path(__file__).resolve().parents[2]
CATALOG = load_catalog(ROOT)
ANSWERS = ROOT / "tests" / "exercises"
BY_NAME = {exercise.name: exercise for exercise in CATALOG}
CAUGHT_BY = dict(
    line.split(maxsplit=1)
    for line in (ANSWERS / "caught_by.txt").read_text().splitlines()
)
FULL = bool(os.environ.get("WORKSHOP_FULL"))
TORCH_RANGE = re.compile(r", torch([<>=!][^:]*)(?=:)")
HEADING = re.compile(r"^# \[answer (\d+)\]\s*$", re.MULTILINE)


def files(folder: str) -> list[Path]:
    """All answers in ``tests/exercises/FOLDER``, by exercise."""
    return sorted(
        path for path in (ANSWERS / folder).glob("*/*") if path.suffix in SUFFIXES
    )


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


@pytest.mark.parametrize("path", files("right"), ids=ids)
def test_differently_written_right_answer_passes(engine, path, tmp_path):
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


@pytest.mark.parametrize("path", files("mistakes"), ids=ids)
def test_known_mistake_gets_the_verdict_it_promises(
    engine, path, tmp_path, record_property
):
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
        "write it again with `make skeletons`"
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
    right = [p for p in files("right") if p.parent.name == exercise.name]
    wrong = [p for p in files("mistakes") if p.parent.name == exercise.name]
    assert len(right) >= 1
    assert len(wrong) >= 5


def test_every_answer_belongs_to_an_exercise():
    names = {path.parent.name for path in files("right") + files("mistakes")}
    assert names <= set(BY_NAME)
