"""Write exercises/ from solutions/: the answers become holes.

    python tools/skeletons.py            every exercise of the catalog
    python tools/skeletons.py NAME...    these

A file in which a hole was already filled is somebody's work and is left alone.
"""

from __future__ import annotations

import sys

from workshop.catalog import Exercise, find_exercise, find_root, load_catalog
from workshop.errors import UserError
from workshop.skeleton import holes, parse, read_solution, skeleton_text


def main(names: list[str]) -> int:
    try:
        catalog = load_catalog(find_root())
        chosen = [find_exercise(catalog, name) for name in names] or catalog
        for exercise in chosen:
            print(f"{exercise.file}: {write(exercise)}")
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def write(exercise: Exercise) -> str:
    """Write one skeleton; returns what was done.

    Raises:
        UserError: the file holds an answer, or the solution has no holes.
    """
    solution = read_solution(exercise.solution)
    if not holes(parse(solution, str(exercise.solution))):
        raise UserError(f"{exercise.solution} has no [start answer 1] marker")
    skeleton = skeleton_text(solution, exercise.suffix)
    if exercise.path.exists():
        present = exercise.path.read_text(encoding="utf-8")
        if present == skeleton:
            return "up to date"
        if _filled(present, len(holes(parse(solution)))):
            raise UserError(
                f"{exercise.path} holds an answer: move it away, or "
                f"`workshop reset {exercise.name}`"
            )
    exercise.path.write_text(skeleton, encoding="utf-8")
    return "written"


def _filled(text: str, total: int) -> bool:
    """Whether fewer holes are open than the exercise has."""
    return text.count("NotImplementedError(") + text.count("is still open") < total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
