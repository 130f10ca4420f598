"""Whether the grader says of a known answer what its heading promises."""

from __future__ import annotations

from pathlib import Path

from workshop.author.answers import Answer
from workshop.catalog import Exercise
from workshop.grader.checks import Check
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind, Result
from workshop.skeleton import read_solution, with_answers


def grade_answer(
    engine: Engine,
    exercise: Exercise,
    answer: Answer,
    folder: Path,
    checks: list[Check] | None = None,
) -> Result:
    """Grade the solution with the answer's code in its holes.

    Args:
        folder: where the file is written.
        checks: default all of the exercise.
    """
    file = folder / exercise.file
    text = with_answers(read_solution(exercise.solution), answer.code)
    file.write_text(text, encoding="utf-8")
    return engine.grade(exercise, file, checks)


def broken_promise(answer: Answer, result: Result) -> str:
    """What differs from the promise, with the verdict's message; "" if nothing does."""
    message = result.verdict.message
    if answer.is_right:
        return "" if result.passed else message
    kinds = {kind.value for kind in Kind if kind is not Kind.RIGHT}
    if answer.kind not in kinds:
        return f"{answer.kind!r} is no verdict: {', '.join(sorted(kinds))}"
    if not answer.words:
        return "the heading promises no words of the message"
    if result.verdict.kind.value != answer.kind:
        return f"promised: {answer.kind}\n{message}"
    said = message.lower()
    missing = [word for word in answer.words if word.lower() not in said]
    if missing:
        return f"the message lacks {missing}:\n{message}"
    for line in said.splitlines():  # a suspicion sends somebody somewhere: on purpose
        promised = any(word.lower() in line for word in answer.words)
        if line.startswith("looks like") and not promised:
            return f"the heading has no word of: {line}"
    return ""
