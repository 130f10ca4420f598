"""The list of exercises, in order: ``exercises/catalog.toml``."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from pathlib import Path

from workshop.errors import UserError
from workshop.lesson_pages import page_of_part

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

CHECKS = "checks.py"  # of an exercise, in a folder of its own
SUFFIXES = (".py", ".sbatch", ".pbs", ".yaml")


def find_root(start: Path | None = None) -> Path:
    """The workshop's folder: the nearest one above that has a catalog.

    Falls back to the folder this package was installed from (editable install).

    Raises:
        UserError: there is no catalog in either place.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents, Path(__file__).resolve().parent.parent):
        if (folder / "exercises" / "catalog.toml").is_file():
            return folder
    raise UserError(
        f"no exercises/catalog.toml in {start} or above it: "
        "run this inside a clone of the workshop",
        exit_status=3,
    )


@dataclass(frozen=True)
class Exercise:
    """One entry of the catalog, with the places of its files."""

    root: Path
    name: str
    title: str
    lesson: str
    minutes: int
    points: int
    hints: tuple[str, ...]
    suffix: str = ".py"
    optional: bool = False
    part: str = ""  # of its lesson, such as 2_wrap; empty: the first page
    torch: str = ""  # the oldest that it can be done with, if newer than the grader's

    @property
    def file(self) -> str:
        return self.name + self.suffix

    @property
    def path(self) -> Path:
        """What the learner edits."""
        return self.root / "exercises" / self.file

    @property
    def solution(self) -> Path:
        return self.root / "solutions" / self.file

    @property
    def checks(self) -> Path:
        """The file with the check functions."""
        return self.root / "tests" / "exercises" / self.name / CHECKS

    @property
    def answers(self) -> Path:
        """The file with the known answers, right and wrong."""
        return self.checks.with_name("answers.md")

    @property
    def page(self) -> str:
        """The page that explains it, relative to the workshop's folder."""
        return page_of_part(self.root, self.lesson, self.part)


def load_catalog(root: Path) -> list[Exercise]:
    """Every exercise in the order of the catalog.

    Raises:
        UserError: the file is missing, is not TOML, or an entry lacks a field.
    """
    path = root / "exercises" / "catalog.toml"
    entries = read_catalog_file(root, "exercise")
    exercises = [_entry(root, path, entry) for entry in entries]
    names = [exercise.name for exercise in exercises]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UserError(f"{path}: {', '.join(sorted(twice))} appears twice")
    return exercises


def read_catalog_file(root: Path, kind: str) -> list[dict]:
    """The entries ``[[kind]]`` of the catalog, as they are written there.

    Raises:
        UserError: the file is missing or is not TOML.
    """
    path = root / "exercises" / "catalog.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")).get(kind, [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}", exit_status=3) from error


def _entry(root: Path, path: Path, entry: dict) -> Exercise:
    fields = {"name", "title", "lesson", "minutes", "points", "hints"}
    if missing := fields - set(entry):
        name = entry.get("name", "an entry")
        raise UserError(f"{path}: {name} lacks {', '.join(sorted(missing))}")
    if unknown := set(entry) - fields - {"suffix", "optional", "part", "torch"}:
        raise UserError(
            f"{path}: {entry['name']} has unknown fields {', '.join(sorted(unknown))}"
        )
    if entry.get("suffix", ".py") not in SUFFIXES:
        raise UserError(f"{path}: {entry['name']}: suffix must be one of {SUFFIXES}")
    return Exercise(root=root, **{**entry, "hints": tuple(entry["hints"])})


def find_exercise(catalog: list[Exercise], name: str) -> Exercise:
    """The exercise of that name, or whose name contains it, if only one does.

    Raises:
        UserError: none or several match; the sentence lists what there is.
    """
    stem = Path(name).name
    stem = Path(stem).stem if stem.endswith(SUFFIXES) else stem
    exact = [exercise for exercise in catalog if exercise.name == stem]
    if exact:
        return exact[0]
    near = [exercise for exercise in catalog if stem in exercise.name]
    if len(near) == 1:
        return near[0]
    if near:
        listed = ", ".join(exercise.name for exercise in near)
        raise UserError(f"{name!r} matches several exercises: choose one of {listed}")
    raise UserError(f"{name!r} is not an exercise: {_meant(catalog, stem)}")


def _meant(catalog: list[Exercise], typed: str) -> str:
    """The exercises whose names are nearest to what was typed."""
    found = difflib.get_close_matches(typed, [exercise.name for exercise in catalog])
    if not found:
        return "`workshop list` shows them all"
    return f"did you mean {' or '.join(found)}?"
