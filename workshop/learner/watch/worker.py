"""The thread that runs the checks of ``workshop watch``."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workshop.catalog import Exercise
from workshop.errors import UserError
from workshop.grader.verdicts.verdict import Result

if TYPE_CHECKING:
    from workshop.grader.engine.engine import Engine


@dataclass
class Finished:
    """What the worker hands back: a result, or the sentence why there is none."""

    exercise: Exercise
    digest: str
    result: Result | None
    problem: str = ""


class Worker:
    """One thread that runs one check at a time and can be told to drop it.

    It counts as busy until the main loop has taken its result (``take``): else the
    same content could be started again before its verdict was seen.
    """

    def __init__(self, engine: Engine, events: queue.SimpleQueue):
        self.engine, self.events = engine, events
        self.current: tuple[Exercise, str] | None = None
        self._dropped = threading.Event()
        self._orders: queue.SimpleQueue[tuple[Exercise, str] | None]
        self._orders = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Worker:
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        self._orders.put(None)
        end = time.monotonic() + 5.0
        while self._thread.is_alive() and time.monotonic() < end:
            self.cancel()
            self._thread.join(0.05)

    @property
    def busy(self) -> bool:
        return self.current is not None

    def doing(self, exercise: Exercise, digest: str) -> bool:
        return self.current == (exercise, digest) and not self._dropped.is_set()

    def start(self, exercise: Exercise, digest: str) -> None:
        """Only while not busy."""
        self._dropped.clear()
        self.current = (exercise, digest)
        self._orders.put(self.current)

    def take(self) -> None:
        """The result has arrived: ready for the next."""
        self.current = None

    def cancel(self) -> None:
        """Drop what runs. Calling it again and again does no harm, and is needed:
        between two checks there is nothing that the engine could end."""
        if self.busy:
            self._dropped.set()
            self.engine.cancel()

    def _work(self) -> None:
        for order in iter(self._orders.get, None):
            self.events.put(("finished", self._grade(*order)))

    def _grade(self, exercise: Exercise, digest: str) -> Finished:
        number = 0

        def on_check(check, verdict) -> None:
            nonlocal number
            number += 1
            self.events.put(("checked", number))
            if self._dropped.is_set():
                raise InterruptedError

        try:
            result = self.engine.grade(exercise, on_check=on_check)
        except UserError as error:
            return Finished(exercise, digest, None, str(error))
        except Exception as error:  # the watch goes on, whatever a check does
            problem = f"the grader itself failed: {type(error).__name__}: {error}"
            if self._dropped.is_set():
                digest = ""
            return Finished(exercise, digest, None, problem)
        if self._dropped.is_set():
            return Finished(exercise, "", None)
        return Finished(exercise, digest, result)
