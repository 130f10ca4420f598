"""Reads the folders of many learners before anything of them is run."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from workshop.catalog import Exercise
from workshop.classroom.book import UNREADABLE, Cell, Row
from workshop.errors import UserError
from workshop.learner.progress import read_bytes


def collect(folders: list[Path], catalog: list[Exercise], each: bool) -> list[Row]:
    """Read every learner's files; nothing is run.

    Raises:
        UserError: a folder that is none, is given twice, or whose learner's name
            another one has; or folders of folders without ``--each``.
    """
    chosen = _learners(folders) if each else folders
    _refuse_doubles(chosen)
    if not each and not any(_find_files(folder, catalog) for folder in chosen):
        for folder in chosen:
            inside = [d for d in _subfolders(folder) if _find_files(d, catalog)]
            if inside:
                raise UserError(
                    f"{folder} has no exercise, but folders in it have: "
                    "add --each if each of them is one learner"
                )
    return [_read_row(folder, catalog) for folder in chosen]


def _learners(folders: list[Path]) -> list[Path]:
    chosen: list[Path] = []
    for folder in folders:
        _refuse_no_folder(folder)
        inside = _subfolders(folder)
        if not inside:
            raise UserError(f"--each: there is no folder in {folder}")
        chosen += inside
    return chosen


def _subfolders(folder: Path) -> list[Path]:
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [one for one in found if one.is_dir() and not one.name.startswith(".")]


def _refuse_no_folder(folder: Path) -> None:
    if not os.path.lexists(folder):
        raise UserError(f"there is no folder {folder}")
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the one that it lies in")


def _refuse_doubles(folders: list[Path]) -> None:
    given: dict[str, Path] = {}
    names: dict[str, Path] = {}
    for folder in folders:
        _refuse_no_folder(folder)
        real = os.path.realpath(folder)
        if real in given:
            raise UserError(f"{folder} is given twice: name each folder once")
        given[real] = folder
        name = learner_name(folder)
        if name in names:
            raise UserError(
                f"{names[name]} and {folder} are both the learner {name!r}: "
                "rename one of the folders"
            )
        names[name] = folder


def learner_name(folder: Path) -> str:
    """The folder's own name; for ``alice/exercises`` it is ``alice``."""
    path = Path(os.path.abspath(folder))
    return path.parent.name if path.name == "exercises" else path.name


def _find_files(folder: Path, catalog: list[Exercise]) -> dict[str, list[Path]]:
    """Exercise name -> where its file lies (``exercises/`` first)."""
    found: dict[str, list[Path]] = {}
    for exercise in catalog:
        candidates = (folder / "exercises" / exercise.file, folder / exercise.file)
        there = [path for path in candidates if os.path.lexists(path)]
        if there:
            found[exercise.name] = there
    return found


def _read_row(folder: Path, catalog: list[Exercise]) -> Row:
    row = Row(learner_name(folder), Path(os.path.abspath(folder)), [])
    try:
        os.listdir(folder)
        inner = folder / "exercises"
        if inner.is_dir():
            os.listdir(inner)
    except OSError as error:
        message = f"{folder} cannot be read: {error.strerror}"
        row.cells = [
            Cell(exercise, status=UNREADABLE, verdict=UNREADABLE, message=message)
            for exercise in catalog
        ]
        return row
    files = _find_files(folder, catalog)
    if not files:
        row.remarks.append("no exercise file in this folder")
    for exercise in catalog:
        paths = files.get(exercise.name, [])
        row.cells.append(_read_cell(exercise, folder, paths))
        if len(paths) > 1:
            kept, other = (path.relative_to(folder) for path in paths)
            row.remarks.append(f"graded {kept}, not the other copy {other}")
    return row


def _read_cell(exercise: Exercise, folder: Path, paths: list[Path]) -> Cell:
    cell = Cell(exercise)
    if not paths:
        cell.status = cell.verdict = "not started"
        cell.message = f"{exercise.file} is missing"
        return cell
    try:
        cell.content = _read_inside(folder, paths[0])
    except UserError as error:
        cell.status = cell.verdict = UNREADABLE
        cell.message = str(error)
    return cell


def _read_inside(folder: Path, path: Path) -> bytes:
    """The file's content, if it really lies in the learner's folder."""
    real, root = os.path.realpath(path), os.path.realpath(folder)
    if os.path.commonpath([real, root]) != root:
        raise UserError(f"{path.name} is a link out of the folder: not followed")
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            raise UserError(f"{path.name} is not a plain file")
        return read_bytes(Path(real))
    except OSError as error:
        raise UserError(f"{path.name} cannot be read: {error.strerror}") from error
