"""A whole new exercise, made of the one that docs/write_your_own_exercise.rst shows."""

from __future__ import annotations

import re
from pathlib import Path

from workshop.author.skeletons import write_skeleton
from workshop.catalog import find_exercise, load_catalog
from workshop.errors import UserError
from workshop.lesson_pages import lesson_names

EXAMPLE = Path("docs") / "examples" / "own_exercise"
EXAMPLE_NAME = "90_agree_to_stop"
EXAMPLE_LESSON = "03_collectives"
_ENTRY = re.compile(r'^\[\[exercise\]\]\nname = "(.*)"$', re.MULTILINE)
_NAME = re.compile(r"\d\d_[a-z0-9_]+")


def make_new(root: Path, name: str, lesson: str) -> list[Path]:
    """Write solution, checks, known answers, catalog entry and exercise of ``name``.

    Args:
        lesson: the page that explains it; "" for the one with the same number.

    Returns:
        the files that were written or changed.

    Raises:
        UserError: the name or lesson can't be, or the exercise exists already.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} can't be the name of an exercise: two digits, then small "
            "letters and underscores, as in 05_my_sampler"
        )
    if name in [exercise.name for exercise in load_catalog(root)]:
        raise UserError(
            f"{name} exists already: edit it, and `workshop dev check {name}`"
        )
    lesson = _lesson(root, name, lesson)
    checks = Path("tests") / "exercises"
    copies = {
        Path("solutions") / f"{EXAMPLE_NAME}.py": Path("solutions") / f"{name}.py",
        checks / EXAMPLE_NAME / "checks.py": checks / name / "checks.py",
        checks / EXAMPLE_NAME / "answers.md": checks / name / "answers.md",
    }
    texts = {
        root / target: _named(root / EXAMPLE / source, name, lesson)
        for source, target in copies.items()
    }
    for target in texts:
        if target.exists():
            raise UserError(f"{target} exists already: move it away")
    for target, text in texts.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    catalog = root / "exercises" / "catalog.toml"
    entry = _named(root / EXAMPLE / "catalog_entry.toml", name, lesson)
    text = catalog.read_text(encoding="utf-8")
    catalog.write_text(_with_entry(text, entry, name), encoding="utf-8")
    exercise = find_exercise(load_catalog(root), name)
    write_skeleton(exercise)
    return [*texts, exercise.path, catalog]


def _lesson(root: Path, name: str, lesson: str) -> str:
    pages = lesson_names(root)
    if not lesson:
        number = name[:3]
        same = [page for page in pages if page.startswith(number)]
        if len(same) != 1:
            raise UserError(
                f"no lesson begins with {number}: say which page explains the "
                "exercise, as in --lesson 03_collectives"
            )
        return same[0]
    if lesson not in pages:
        raise UserError(f"there is no lesson {lesson!r}: one of {', '.join(pages)}")
    return lesson


def _named(path: Path, name: str, lesson: str) -> str:
    text = path.read_text(encoding="utf-8")
    return text.replace(EXAMPLE_NAME, name).replace(EXAMPLE_LESSON, lesson)


def _with_entry(catalog: str, entry: str, name: str) -> str:
    """The catalog with the entry before the first exercise whose name comes later."""
    for found in _ENTRY.finditer(catalog):
        if found[1] > name:
            place = found.start()
            break
    else:
        paths = re.search(r"^\[\[path\]\]$", catalog, re.MULTILINE)
        place = paths.start() if paths else len(catalog)
    before, after = catalog[:place], catalog[place:]
    return f"{before.rstrip()}\n\n{entry.strip()}\n\n{after}"
