"""``workshop watch``: check again on every save, move on when one is right.

Three threads feed one queue of events: the files (watchfiles), the keys, and the
worker that runs the checks. The main thread alone decides and draws. What is
compared is the content of the file, so a save without a change costs nothing, a
rename or a deletion is no special case, and the last content always gets the
last verdict: a check whose file has changed meanwhile is ended and done again.
"""

from __future__ import annotations

import contextlib
import queue
import time
from typing import TYPE_CHECKING

from workshop.catalog import Exercise
from workshop.errors import UserError
from workshop.learner.progress import (
    CHANGED,
    MISSING,
    NOT_FULLY,
    NOT_STARTED,
    RIGHT,
    WRONG,
    content_of,
    digest_of,
)
from workshop.learner.watch.files import Files
from workshop.learner.watch.keys import Keys
from workshop.learner.watch.worker import Finished, Worker
from workshop.system.paths import shown_path
from workshop.system.signals import ending_signals, first_asks

if TYPE_CHECKING:
    from workshop.grader.engine.engine import Engine
    from workshop.learner.display import Screen
    from workshop.learner.house import House

QUIET = 0.15  # seconds without a change before a check starts
LOOK = 0.5  # seconds between two looks at the files: network drives tell no events
GONE = "gone"  # stands for the digest of a file that is not there
KEYS = "h hint, n next, c check again, l list, q quit"


class Watch:
    """The main loop; ``run`` returns the exit status."""

    def __init__(
        self, house: House, engine: Engine, screen: Screen, exercise: Exercise
    ):
        self.house, self.screen, self.exercise = house, screen, exercise
        self.catalog, self.progress = house.catalog, house.progress
        self.events: queue.SimpleQueue = queue.SimpleQueue()
        self.worker = Worker(engine, self.events)
        self.files = Files(house.root / "exercises", self.catalog, self.events)
        self.keys = Keys(self.events)
        self.seen = ""  # digest of the newest content of the current file
        self.judged = ""  # digest that the shown verdict belongs to
        self.changed_at = 0.0
        self.leaving = False
        self.status = 0

    def run(self) -> int:
        """Until q, Ctrl-C, or the last exercise is right."""
        with contextlib.ExitStack() as stack:
            ask = first_asks(
                lambda number: self.events.put(("signal", number)),
                lambda number: SystemExit(128 + number),
            )
            stack.enter_context(ending_signals(ask))
            stack.enter_context(self.worker)
            stack.enter_context(self.files)
            stack.enter_context(self.keys)
            self.turn_to(self.exercise)
            while not self.leaving:
                self._handle(self._wait())
                if not self.leaving:
                    self._look()
        if self.status == 0:
            self.screen.progress(self.progress.states(self.catalog))
        return self.status

    def _wait(self) -> tuple:
        """The next event, or a tick when it is time to look or to check."""
        pending = self.seen not in (self.judged, GONE)
        patience = QUIET / 3 if pending else LOOK
        try:
            return self.events.get(timeout=patience)
        except queue.Empty:
            return ("tick", None)

    def _handle(self, event: tuple) -> None:
        kind, value = event
        if kind == "key":
            self._key(value)
        elif kind == "finished":
            self.worker.take()
            self._finished(value)
        elif kind == "signal":
            self.leaving, self.status = True, 128 + value
        elif kind == "checked" and self.worker.busy:
            self.keys.draw(f"{self.exercise.name}: {value} done ...")

    # -- files -------------------------------------------------------------------
    def _look(self) -> None:
        """Notice a new content; start or end a check as it requires."""
        saved = self.files.newly_saved()
        if saved and self.exercise not in saved and saved[0].path.exists():
            self.turn_to(saved[0], saved=True)
        now = time.monotonic()
        digest = self._digest()
        if digest != self.seen:
            self.seen, self.changed_at = digest, now
            if digest == GONE:
                self._show_missing()
        if digest in (GONE, self.judged) or now - self.changed_at < QUIET:
            return
        if self.worker.busy:
            if not self.worker.doing(self.exercise, digest):
                self.worker.cancel()  # it reads a content that is no more
            return
        self._check(digest)

    def _digest(self) -> str:
        try:
            content = content_of(self.exercise)
        except UserError as error:
            return f"unreadable: {error}"
        return GONE if content is None else digest_of(self.exercise, content)

    def _check(self, digest: str) -> None:
        if digest.startswith("unreadable: "):
            self.judged = digest
            self._headline()
            self.screen.say(digest.removeprefix("unreadable: "))
            self._foot()
            return
        self.keys.draw(f"{self.exercise.name}: checking ...")
        self.worker.start(self.exercise, digest)

    def _finished(self, done: Finished) -> None:
        self.keys.draw("")
        current = done.exercise == self.exercise and done.digest == self._digest()
        if not current:
            return  # _look starts the check of the newest content
        self.judged = done.digest
        self._headline()
        if done.result is None:
            self.screen.say(done.problem)
            self._foot()
            return
        self._keep(done)
        self.screen.result(self.exercise, done.result)
        if done.result.status in (RIGHT, NOT_FULLY):
            self._advance()
            return
        if done.result.status == "not started":
            self.screen.not_started(self.exercise)
        self._foot()

    def _keep(self, done: Finished) -> None:
        assert done.result is not None
        kind = done.result.verdict.kind.value
        try:
            self.progress.record(self.exercise, done.digest, done.result.status, kind)
        except UserError as error:
            self.screen.say(f"{error} (the verdict holds)")

    # -- going from one to the next ----------------------------------------------
    def turn_to(self, exercise: Exercise, saved: bool = False) -> None:
        """Make ``exercise`` the current one; check it if there is a need."""
        self.exercise = exercise
        self.worker.cancel()
        self.files.forget()
        state = self.progress.state(exercise)
        digest = self._digest()
        self.seen, self.changed_at = digest, time.monotonic()
        self.judged = ""
        if saved:
            return
        if state in (CHANGED, WRONG):
            self.changed_at -= QUIET  # nobody is typing: begin at once
            self.screen.next(exercise)
            return
        self.judged = digest
        if state == MISSING:
            self._show_missing()
            return
        if state == NOT_STARTED:
            self.screen.next(exercise)
        elif state == RIGHT:
            self.screen.say(f"{exercise.name} is right already.", "green")
        elif state == NOT_FULLY:
            told = f"{exercise.name} is right as far as it could be tried here."
            self.screen.say(told, "cyan")
        self._foot()

    def _advance(self) -> None:
        following = self.progress.next(self.catalog, after=self.exercise)
        if following is None:
            self._finish()
            return
        self.screen.say()
        self.turn_to(following)

    def _finish(self) -> None:
        states = self.progress.states(self.catalog)
        if self.house.path is not None:
            self.screen.next_on_path(self.house.path, states)
        else:
            self.screen.finished(states)
        self.leaving = True

    # -- keys --------------------------------------------------------------------
    def _key(self, key: str) -> None:
        self.keys.draw("")
        if key == "q":
            self.leaving = True
        elif key == "h":
            self._hint()
        elif key == "l":
            states = self.progress.states(self.catalog)
            self.screen.catalog(self.catalog, states)
            self._foot(bar=False)
        elif key == "n":
            following = self.progress.next(self.catalog, after=self.exercise)
            if following is None:
                self._finish()
            elif following == self.exercise:
                self.screen.say("This is the only exercise that isn't right yet.")
            else:
                self.turn_to(following)
        elif key == "c":
            self.judged = ""
            self.changed_at = time.monotonic() - QUIET

    def _hint(self) -> None:
        try:
            shown = self.progress.show_hint(self.exercise)
        except UserError as error:
            self.screen.say(str(error))
            shown = len(self.exercise.hints)
        self.screen.hints(self.exercise, shown)
        self._foot(bar=False)

    # -- drawing -----------------------------------------------------------------
    def _headline(self) -> None:
        self.screen.clear()

    def _show_missing(self) -> None:
        self._headline()
        self.screen.say(
            f"{self.exercise.file} is gone: save it again, or restore it with "
            f"`workshop reset {self.exercise.name}`"
        )
        self._foot()

    def _foot(self, bar: bool = True) -> None:
        """The progress, where to work, and the keys."""
        if bar:
            self.screen.progress(self.progress.states(self.catalog))
            self.screen.line(
                ("Watching ", "dim"),
                (shown_path(self.exercise.path), "bold"),
                (" ...", "dim"),
            )
        if self.keys.active:
            self.screen.say(KEYS, "dim")
