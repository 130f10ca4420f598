"""A stand-in for the grader's engine that plays what the learner's file orders.

``# play: ORDER`` on the first line: right, partly, wrong, sleep N (then right), break
(the set-up is broken), fail (an error in the grader itself). Each run is noted in
``played.log``, so that tests see what was run, and never two at once.
"""

from __future__ import annotations

import threading
from pathlib import Path

from workshop.errors import UserError
from workshop.grader.checks import Check
from workshop.grader.verdicts.verdict import Kind, Result, Verdict, not_fully_checked
from workshop.learner.progress import is_untouched

LOG = Path.cwd() / "played.log"


class Cancelled(Exception):
    """As the real engine's."""


class Engine:
    exposed = ""

    def __init__(self, seeds=(1, 2), hidden=(), overlap=False):
        self._stop = threading.Event()
        self._busy = False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.cancel()

    def warm(self):
        pass

    def cancel(self):
        if self._busy:
            self._stop.set()

    def grade(self, exercise, path=None, stop_at_first=True, on_check=None):
        path = path or exercise.path
        content = path.read_bytes()
        if is_untouched(exercise, content):
            lines = [f"not started: {path.name}"]
            return Result(exercise.name, [Verdict(Kind.NOT_STARTED, lines)])
        text = content.decode("utf-8", "replace")
        order = text.splitlines()[0].removeprefix("# play: ") if text else "empty"
        self._note(f"begin {order}")
        verdict = self._play(order)
        self._note(f"end {order}")
        if on_check:
            on_check(Check(path, "test_it", "It works.", 2, 1), verdict)
        return Result(exercise.name, [verdict], 0.1, planned=1)

    def _play(self, order):
        seen = {"check": "test_it", "world_size": 2, "seed": 1, "seconds": 0.1}
        self._stop.clear()
        self._busy = True
        try:
            if order.startswith("sleep ") and self._stop.wait(float(order[6:])):
                self._note(f"cancelled {order}")
                raise Cancelled
        finally:
            self._busy = False
        if order.startswith("break"):
            raise UserError("torch cannot be imported: run `make tour`", 3)
        if order.startswith("fail"):
            raise RuntimeError("a bug in the grader")
        if order.startswith(("right", "sleep")):
            return Verdict(Kind.RIGHT, **seen)
        if order.startswith("partly"):
            partial = Verdict(Kind.NOT_FULLY, **seen)
            partial.untried = ["the real nodes"]
            partial.missing = ["this machine has no Slurm"]
            return not_fully_checked([partial])
        if order.startswith("environment"):
            return Verdict(Kind.ENVIRONMENT, ["environment broken: no gloo"], **seen)
        lines = [
            "wrong value: the sum",
            f"    you ordered {order}",
            "    rank 1: \x1b[31mescaped\x07 [bold]marked[/bold] " + "long " * 30,
            "check, on 2 ranks with seed 1: It adds.",
            "read: docs/lessons/01_lesson.rst",
        ]
        return Verdict(Kind.WRONG_VALUE, lines, details=["rank 1: all of it"], **seen)

    def _note(self, line):
        with open(LOG, "a") as log:
            log.write(line + "\n")
