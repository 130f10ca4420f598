"""Write exercises/ from solutions/: the answers become holes."""

from __future__ import annotations

from workshop.catalog import Exercise
from workshop.errors import UserError
from workshop.skeleton import holes, parse, read_solution, skeleton_text


def write_skeleton(exercise: Exercise) -> str:
    """Write one skeleton; returns what was done: "written" or "up to date".

    Raises:
        UserError: the file holds an answer, or the solution has no holes.
    """
    solution = read_solution(exercise.solution)
    total = len(holes(parse(solution, str(exercise.solution))))
    if not total:
        raise UserError(f"{exercise.solution} has no [start answer 1] marker")
    skeleton = skeleton_text(solution, exercise.suffix)
    if exercise.path.exists():
        present = exercise.path.read_text(encoding="utf-8")
        if present == skeleton:
            return "up to date"
        if _open_holes(present) < total:
            raise UserError(
                f"{exercise.path} holds an answer: move it away, or "
                f"`workshop reset {exercise.name}`"
            )
    exercise.path.write_text(skeleton, encoding="utf-8")
    return "written"


def _open_holes(text: str) -> int:
    return text.count("NotImplementedError(") + text.count("is still open")
