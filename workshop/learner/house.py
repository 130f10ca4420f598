"""What most commands need: the folder, its catalog, the learner's progress, a screen.

Torch is never imported here (the engine's server does that, while this process imports
what it draws with); rich is imported only by the commands that draw.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workshop.catalog import (
    Exercise,
    find_exercise,
    find_root,
    load_catalog,
)
from workshop.errors import UserError
from workshop.learning_paths import LearningPath, find_path, load_paths
from workshop.system.paths import shown_path

if TYPE_CHECKING:
    from workshop.grader.engine.engine import Engine
    from workshop.learner.display import Screen
    from workshop.learner.progress import Progress

STOPPED = 130  # exit status after Ctrl-C, as shells have it


def complain(sentence: str) -> None:
    """One line on stderr, whatever the terminal can encode."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    safe = sentence.encode(encoding, "backslashreplace").decode(encoding)
    click.echo(f"workshop: {' '.join(safe.split())}", err=True)


def complete_name(ctx, param, incomplete: str) -> list[str]:
    """Names of exercises, for the shell's completion."""
    try:
        return [e.name for e in load_catalog(find_root()) if incomplete in e.name]
    except UserError:
        return []


class House:
    """What most commands need: the folder, its catalog, the learner's progress."""

    def __init__(self) -> None:
        from workshop.learner.progress import Progress

        self.root = find_root()
        self.every = load_catalog(self.root)
        self.catalog = self.every  # what counts: all of them, or those of a path
        self.progress: Progress = Progress(self.root, say=complain)
        self.path: LearningPath | None = None  # the one that is followed

    def find(self, name: str) -> Exercise:
        """The exercise of that name, part of a name, or path of a file to edit.

        Raises:
            UserError: unknown, ambiguous, or the path of some other file.
        """
        exercise = find_exercise(self.every, name)
        if os.sep in name and Path(name).resolve() != exercise.path.resolve():
            raise UserError(
                f"{name} is not {shown_path(exercise.path)}, the file that is meant by "
                f"{exercise.name}: use the name alone"
            )
        if self.path is not None and exercise not in self.catalog:
            raise UserError(
                f"{exercise.name} is not on the path {self.path.name}: leave out --path"
            )
        return exercise

    def paths(self) -> list[LearningPath]:
        return load_paths(self.root, self.every)

    def follow(self, name: str | None) -> None:
        """From now on, only the exercises of this path count; None: all of them.

        Raises:
            UserError: no path has that name.
        """
        if name is not None:
            self.path = find_path(self.paths(), name)
            self.catalog = list(self.path.exercises)

    def current(self, name: str | None) -> Exercise | None:
        """The named exercise, else the next that is not right, else None."""
        return self.find(name) if name else self.progress.next(self.catalog)


def make_screen() -> Screen:
    from workshop.learner.display import Screen

    return Screen()


@contextlib.contextmanager
def warm_engine(needed: bool = True, seeds: tuple[int, ...] = ()) -> Iterator[Engine]:
    """An engine whose server already imports torch, before anything else is done."""
    from workshop.grader.engine.engine import Engine

    engine = Engine(seeds=seeds, overlap=True) if seeds else Engine(overlap=True)
    with engine:
        if needed:
            engine.warm()
        yield engine
