"""What every exercise must have, whatever its checks say."""

from __future__ import annotations

from collections.abc import Sequence

from workshop.author.answers import Answer
from workshop.catalog import Exercise
from workshop.skeleton import holes, parse, read_solution

MOST_HOLES = 3
LONGEST_ANSWER = 14  # lines
HINTS = 3
FEWEST_MISTAKES = 5


def problems(exercise: Exercise, answers: Sequence[Answer]) -> list[str]:
    """A sentence for each thing that the exercise lacks."""
    return [*_of_the_file(exercise), *_of_the_entry(exercise), *_of_answers(answers)]


def _of_the_file(exercise: Exercise) -> list[str]:
    marked = holes(parse(read_solution(exercise.solution), str(exercise.solution)))
    found = []
    if not 1 <= len(marked) <= MOST_HOLES:
        found.append(f"it has {len(marked)} holes, not 1 to {MOST_HOLES}")
    skeleton = exercise.path.read_text(encoding="utf-8")
    for hole in marked:
        if not 1 <= len(hole.answer) <= LONGEST_ANSWER:
            lines = len(hole.answer)
            found.append(f"answer {hole.number} has {lines} lines, not 1 to 14")
        todo = f"TODO {hole.number} of {len(marked)}"
        if todo not in skeleton:
            found.append(f"no comment says {todo!r}")
    for wanted in (f"workshop check {exercise.name}", exercise.lesson):
        if wanted not in skeleton:
            found.append(f"its docstring lacks {wanted!r}")
    return found


def _of_the_entry(exercise: Exercise) -> list[str]:
    found = []
    if len(exercise.hints) != HINTS:
        found.append(f"it has {len(exercise.hints)} hints, not {HINTS}")
    if not (exercise.root / exercise.page).is_file():
        found.append(f"its page {exercise.page} does not exist")
    return found


def _of_answers(answers: Sequence[Answer]) -> list[str]:
    found = []
    right = [answer for answer in answers if answer.is_right]
    wrong = len(answers) - len(right)
    if not right:
        found.append("no other right answer is known: write one differently")
    if wrong < FEWEST_MISTAKES:
        found.append(f"{wrong} wrong answers are known: {FEWEST_MISTAKES} are needed")
    return found
