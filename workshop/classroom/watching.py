"""Grades again what changes in the learners' folders, until told to stop."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from workshop.classroom.book import NOT_GRADED, Cell, Gradebook, Row
from workshop.classroom.outputs import Outputs
from workshop.classroom.pool import grade_all, to_grade
from workshop.errors import UserError
from workshop.system.signals import ending_signals, first_asks

if TYPE_CHECKING:
    from workshop.grader.engine.engine import Engine
    from workshop.learner.display import Screen

LOOK_EVERY = 1.0  # seconds from the end of one look at the folders to the next


class KeptEngines:
    """Engines that live from one round to the next: a new one imports torch again."""

    def __init__(self, make_engine: Callable[[], Engine]):
        self.make_engine = make_engine
        self.free: list[Engine] = []  # append and pop are atomic
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> KeptEngines:
        return self

    def __exit__(self, *exception) -> None:
        self.stack.close()

    @contextlib.contextmanager
    def lend(self) -> Iterator[Engine]:
        """An engine for one thread, for as long as it grades."""
        try:
            engine = self.free.pop()
        except IndexError:
            engine = self.stack.enter_context(self.make_engine())
        try:
            yield engine
        finally:
            self.free.append(engine)


def watch_folders(
    book: Gradebook,
    read: Callable[[], list[Row]],
    make_engine: Callable,
    jobs: int,
    outputs: Outputs,
    make_screen: Callable[[], Screen],
) -> None:
    """Grade all, then again and again what has changed; returns at Ctrl-C."""
    stop = threading.Event()
    handler = first_asks(lambda number: stop.set(), lambda number: KeyboardInterrupt())
    with ending_signals(handler), contextlib.suppress(KeyboardInterrupt):
        goes_on = grade_all(book, make_engine, jobs, outputs, make_screen)
        while goes_on and not stop.wait(LOOK_EVERY):
            newer = _look_again(book, read)
            if newer is None:
                continue
            names = _learners(newer)
            book = newer
            goes_on = grade_all(
                book, make_engine, jobs, outputs, make_screen, table=False
            )
            _say(make_screen(), names)
    outputs.watching = False
    outputs.write(book, now=True)


def _look_again(book: Gradebook, read: Callable[[], list[Row]]) -> Gradebook | None:
    """The folders as they are now, with the grades that still hold; None: no change."""
    try:
        rows = read()
    except UserError:  # a folder is being moved: it is there at one of the next looks
        return None
    before = {row.learner: row.cells for row in book.rows}
    for row in rows:
        if earlier := before.get(row.learner):
            row.cells = [_kept(*pair) for pair in zip(earlier, row.cells, strict=True)]
    if _seen(rows) == _seen(book.rows):
        return None
    return Gradebook(book.catalog, rows)


def _kept(old: Cell, new: Cell) -> Cell:
    """The old cell with its grade, if the file is the same."""
    if old.status == NOT_GRADED or new.content is None:
        return new
    return old if old.content == new.content else new


def _seen(rows: list[Row]) -> list:
    """What a change of the folders changes."""
    return [
        (row.learner, row.remarks, [(cell.content, cell.message) for cell in row.cells])
        for row in rows
    ]


def _learners(book: Gradebook) -> list[str]:
    """Who has changed something that is to be graded."""
    waiting = {id(cell) for cell in to_grade(book)}
    return [
        row.learner for row in book.rows if any(id(c) in waiting for c in row.cells)
    ]


def _say(screen: Screen, names: list[str]) -> None:
    if names:
        screen.say(f"{time.strftime('%H:%M:%S')}  graded again: {', '.join(names)}")
