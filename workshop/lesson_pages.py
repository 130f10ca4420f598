"""Where the pages of a lesson are: in one file, or in a folder with a file per part.

``docs/lessons/05_ddp_spawn/index.rst`` is a page of contents, and ``1_five_lines.rst``
beside it the first part. A lesson may also be one page, ``docs/lessons/99_mean.rst``.
An exercise can belong to a page about production instead, which has no number:
``docs/production/data_at_scale.rst``.
"""

from __future__ import annotations

from pathlib import Path

from workshop.common_mistakes import written_out

FOLDER = "docs/lessons"
PRODUCTION = "docs/production"
CONTENTS = "index.rst"


def lesson_names(root: Path) -> list[str]:
    """``["01_one_device", ...]``: every lesson that has a page, in order."""
    folder = root / FOLDER
    single = {path.stem for path in folder.glob("[0-9]*.rst")}
    folders = {path.parent.name for path in folder.glob(f"[0-9]*/{CONTENTS}")}
    return sorted(single | folders)


def first_page(root: Path, lesson: str) -> Path:
    """Its page of contents; its only page if it has no parts."""
    if not lesson[:1].isdigit():
        return root / PRODUCTION / f"{lesson}.rst"
    contents = root / FOLDER / lesson / CONTENTS
    return contents if contents.is_file() else root / FOLDER / f"{lesson}.rst"


def parts_of(root: Path, lesson: str) -> list[Path]:
    """The pages of its parts in order; none if the lesson is one page."""
    return sorted((root / FOLDER / lesson).glob("[0-9]*.rst"))


def pages_of(root: Path, lesson: str) -> list[Path]:
    """All pages of a lesson in the order in which they are read."""
    return [first_page(root, lesson), *parts_of(root, lesson)]


def lesson_text(root: Path, lesson: str) -> str:
    """The sources of all its pages, one after the other."""
    return "\n".join(page_text(page) for page in pages_of(root, lesson))


def page_text(page: Path) -> str:
    """The source of a page, with the rows of its table of common mistakes."""
    return written_out(page.read_text(encoding="utf-8"))


def page_of_part(root: Path, lesson: str, part: str) -> str:
    """Of a part, or of the lesson without one, relative to the workshop's folder."""
    if part:
        return f"{FOLDER}/{lesson}/{part}.rst"
    return first_page(root, lesson).relative_to(root).as_posix()
