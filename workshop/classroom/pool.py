"""Grades what was read, several exercises at a time, until done or told to stop."""

from __future__ import annotations

import contextlib
import queue
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workshop.classroom.book import ENVIRONMENT, NOT_GRADED, Cell, Gradebook
from workshop.classroom.formats import text_of
from workshop.classroom.outputs import WRITE_EVERY, Outputs
from workshop.errors import UserError
from workshop.system.signals import ending_signals, first_asks

if TYPE_CHECKING:
    from workshop.grader.engine.engine import Engine
    from workshop.learner.display import Screen

STOP: Any = object()  # in the queue of graded cells: a signal asked to stop


class Pool:
    """``jobs`` threads, each with an engine of its own, take cells from a queue.

    A thread with its own server cannot be held up by what another one grades.
    """

    def __init__(self, make_engine: Callable[[], Engine], jobs: int, folder: Path):
        self.make_engine, self.folder = make_engine, folder
        self.todo: queue.SimpleQueue[Cell | None] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[Cell | None] = queue.SimpleQueue()
        self.stopping = threading.Event()
        self.engines: list[Engine] = []
        self.exposed = ""  # why what is graded can reach this machine's files
        self.threads = [
            threading.Thread(target=self._work, args=(number,), daemon=True)
            for number in range(jobs)
        ]

    def start(self, cells: list[Cell]) -> None:
        for cell in cells:
            self.todo.put(cell)
        for thread in self.threads:
            self.todo.put(None)
            thread.start()

    def stop(self) -> None:
        """End what runs; the threads then leave."""
        self.stopping.set()
        for thread in self.threads:
            while thread.is_alive():
                for engine in list(self.engines):
                    engine.cancel()
                thread.join(0.05)

    def _work(self, number: int) -> None:
        try:
            with self.make_engine() as engine:
                self.engines.append(engine)
                for cell in iter(self.todo.get, None):
                    if self.stopping.is_set():
                        break
                    self._grade(engine, cell, self.folder / str(number))
                    self.done.put(cell)
                self.engines.remove(engine)
        finally:
            self.done.put(None)

    def _grade(self, engine: Engine, cell: Cell, folder: Path) -> None:
        """Fills in the cell; the cell says whatever goes wrong."""
        started = time.monotonic()
        try:
            folder.mkdir(exist_ok=True)
            path = folder / cell.exercise.file
            path.write_bytes(cell.content or b"")
            result = engine.grade(cell.exercise, path=path, on_check=self._go_on)
            self.exposed = self.exposed or engine.exposed
            cell.status, verdict = result.status, result.verdict
            cell.verdict, cell.message = verdict.kind.value, verdict.message
        except Exception as error:
            if self.stopping.is_set():
                return  # cancelled: stays "not graded"
            cell.status = cell.verdict = ENVIRONMENT
            kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            cell.message = f"{kind}{error}"
        cell.seconds = time.monotonic() - started

    def _go_on(self, check, verdict) -> None:
        if self.stopping.is_set():
            raise InterruptedError("stopped between two checks")


def grade_all(
    book: Gradebook,
    make_engine: Callable[[], Engine],
    jobs: int,
    outputs: Outputs,
    make_screen: Callable[[], Screen],
    table: bool = True,
) -> bool:
    """Grade every cell that has a content and no grade; False if it was interrupted.

    SIGTERM and SIGHUP (a closed terminal) end it as Ctrl-C does: results so far
    are written and shown.
    """
    waiting = to_grade(book)
    jobs = min(jobs, max(1, len(waiting)))
    with tempfile.TemporaryDirectory(prefix="workshop-grade-") as folder:
        pool = Pool(make_engine, jobs, Path(folder))
        asked: list[int] = []  # signals; they count even if all was graded by then

        def ask_to_stop(number: int) -> None:
            asked.append(number)
            pool.done.put(STOP)

        stop = first_asks(ask_to_stop, lambda number: KeyboardInterrupt())
        screen = None
        try:
            with ending_signals(stop):
                pool.start(waiting)
                screen = make_screen()
                finished = _follow(book, pool, outputs, screen)
        except KeyboardInterrupt:
            finished = False
        finally:
            # an impatient Ctrl-C loses no results, and is no lost Ctrl-C
            with ending_signals(lambda number, frame: asked.append(number)):
                pool.stop()
                outputs.write(book, now=True)
    with contextlib.suppress(BrokenPipeError):
        screen = screen or make_screen()
        if table:
            screen.gradebook(book)
        if table and pool.exposed:
            screen.say(f"The answers could change this machine's files: {pool.exposed}")
    return finished and not asked


def to_grade(book: Gradebook) -> list[Cell]:
    """What was handed in and has no grade yet."""
    cells = [cell for cell in book.cells if cell.content is not None]
    return [cell for cell in cells if cell.status == NOT_GRADED]


def _follow(book: Gradebook, pool: Pool, outputs: Outputs, screen: Screen) -> bool:
    """Wait for all threads; show and write what arrives; False if told to stop."""
    owner = {id(cell): row for row in book.rows for cell in row.cells}
    open_cells = Counter(id(owner[id(cell)]) for cell in to_grade(book))
    live = len(pool.threads)
    with screen.grading(book.total) as progress:
        task = progress.task_ids[0]
        progress.update(task, completed=book.graded)
        while live:
            try:
                cell = pool.done.get(timeout=WRITE_EVERY)
            except queue.Empty:
                outputs.write(book)  # what came since the last writing
                continue
            if cell is STOP:
                return False
            if cell is None:
                live -= 1
                continue
            row = owner[id(cell)]
            text = f"{row.learner[:20]} {cell.exercise.name}"
            progress.update(task, advance=1, description=text_of(text))
            outputs.write(book)
            open_cells[id(row)] -= 1
            if not screen.interactive and not open_cells[id(row)]:
                screen.say(f"{row.learner}: {row.points} of {row.possible} points")
    if book.graded < book.total:
        raise UserError(
            "a grading thread ended before its work was done: grade again",
            exit_status=3,
        )
    return True
