"""The paths through the workshop: ``[[path]]`` in ``exercises/catalog.toml``.

The first page shows them as cards, and ``workshop next --path NAME`` follows one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workshop.catalog import Exercise, read_catalog_file
from workshop.errors import UserError


@dataclass(frozen=True)
class LearningPath:
    """Lessons to read, in order, and the exercises to do on the way."""

    name: str
    title: str
    promise: str
    lessons: tuple[str, ...]
    exercises: tuple[Exercise, ...]
    starter: str = ""  # the file to copy at its end
    then: str = ""  # the path that continues where this one ends

    def of_lesson(self, lesson: str) -> list[Exercise]:
        return [exercise for exercise in self.exercises if exercise.lesson == lesson]

    @property
    def minutes(self) -> int:
        """For the exercises alone: the pages say how long it takes to read them."""
        return sum(exercise.minutes for exercise in self.exercises)


def is_optional(lesson: str, catalog: list[Exercise]) -> bool:
    """Whether every exercise of the lesson is optional, and so the lesson itself."""
    own = [exercise for exercise in catalog if exercise.lesson == lesson]
    return bool(own) and all(exercise.optional for exercise in own)


def load_paths(root: Path, catalog: list[Exercise]) -> list[LearningPath]:
    """Every path in the order of the catalog.

    Raises:
        UserError: an entry lacks a field, or names a lesson, an exercise or a file
            that does not exist.
    """
    file = root / "exercises" / "catalog.toml"
    paths = [_entry(file, one, catalog) for one in read_catalog_file(root, "path")]
    names = [path.name for path in paths]
    for path in paths:
        if path.then and path.then not in names:
            raise UserError(
                f"{file}: the path {path.name} is followed by {path.then}, which is no "
                "path"
            )
    return paths


def find_path(paths: list[LearningPath], name: str) -> LearningPath:
    """The path of that name.

    Raises:
        UserError: there is none; the sentence lists what there is.
    """
    for path in paths:
        if path.name == name:
            return path
    listed = ", ".join(path.name for path in paths)
    cure = f"choose one of {listed}" if listed else "none is in the catalog"
    raise UserError(f"{name!r} is not a path: {cure}")


NEEDED = {"name", "title", "promise"}
OPTIONAL = {"lessons", "exercises", "starter", "then"}


def _entry(file: Path, entry: dict, catalog: list[Exercise]) -> LearningPath:
    """A path as the catalog describes it.

    Raises:
        UserError: it has other fields, or leads to what is not there.
    """
    _check_fields(file, entry)
    every = dict.fromkeys(exercise.lesson for exercise in catalog)
    usual = [lesson for lesson in every if not is_optional(lesson, catalog)]
    lessons = tuple(entry.get("lessons", usual))
    chosen = entry.get("exercises")
    exercises = _exercises_of(lessons, chosen, catalog)
    starter = entry.get("starter", "")
    lost = [lesson for lesson in lessons if lesson not in every]
    lost += sorted(set(chosen or []) - {exercise.name for exercise in exercises})
    if starter and not (file.parent.parent / starter).is_file():
        lost.append(starter)
    if lost:
        raise UserError(
            f"{file}: the path {entry['name']} leads to {lost[0]}, which is not there"
        )
    return LearningPath(
        entry["name"],
        entry["title"],
        entry["promise"],
        lessons,
        exercises,
        starter,
        entry.get("then", ""),
    )


def _check_fields(file: Path, entry: dict) -> None:
    name = entry.get("name", "a path")
    missing = NEEDED - set(entry)
    if missing:
        raise UserError(f"{file}: {name} lacks {', '.join(sorted(missing))}")
    unknown = set(entry) - NEEDED - OPTIONAL
    if unknown:
        raise UserError(
            f"{file}: {name} has unknown fields {', '.join(sorted(unknown))}"
        )


def _exercises_of(
    lessons: tuple[str, ...], chosen: list[str] | None, catalog: list[Exercise]
) -> tuple[Exercise, ...]:
    """Those of the lessons that are chosen, or all that aren't optional."""

    def is_on_path(exercise: Exercise) -> bool:
        return exercise.name in chosen if chosen else not exercise.optional

    return tuple(
        exercise
        for lesson in lessons
        for exercise in catalog
        if exercise.lesson == lesson and is_on_path(exercise)
    )
