"""``workshop watch``: check again on every save, go on when one is right.

Three threads feed one queue of events: the files (watchfiles), the keys, and the
worker that runs the checks. The main thread alone decides and draws. What is
compared is the content of the file, so a save without a change costs nothing, a
rename or a deletion is no special case, and the last content always gets the
last verdict: a check whose file has changed meanwhile is ended and done again.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import re
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.catalog import Exercise, shown_path
from grader.commands.progress import (
    CHANGED,
    MISSING,
    NOT_STARTED,
    RIGHT,
    WRONG,
    content_of,
    digest_of,
)
from grader.errors import UserError
from grader.verdicts.verdict import Result

if TYPE_CHECKING:
    from grader.commands.display import Screen
    from grader.commands.house import House
    from grader.engine.engine import Engine

QUIET = 0.15  # seconds without a change before a check starts
LOOK = 0.5  # seconds between two looks at the files: network drives tell no events
GONE = "gone"  # stands for the digest of a file that is not there
# What arrow and function keys send: the letters in it are no keys.
ARROWS = re.compile(rb"\x1b(?:\[[0-9;?]*[ -~]|O[ -~])?")
KEYS = "h hint, n next, c check again, l list, q quit"


@dataclass
class Finished:
    """What the worker hands back: a result, or the sentence why there is none."""

    exercise: Exercise
    digest: str
    result: Result | None
    problem: str = ""


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
            stack.enter_context(signals_ask_to_leave(self.events))
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
        try:
            return self.events.get(timeout=QUIET / 3 if pending else LOOK)
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
        if done.result.passed:
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
        self._foot()

    def _advance(self) -> None:
        following = self.progress.next(self.catalog, after=self.exercise)
        if following is None:
            self.screen.next(None)
            self.leaving = True
            return
        self.screen.say()
        self.turn_to(following)

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
                self.screen.next(None)
                self.leaving = True
            elif following == self.exercise:
                self.screen.say("This is the last one that is not right.")
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
            f"{self.exercise.file} is gone: save it again, or "
            f"`workshop reset {self.exercise.name}` brings it back"
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
        while (order := self._orders.get()) is not None:
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
            return Finished(
                exercise, "" if self._dropped.is_set() else digest, None, problem
            )
        if self._dropped.is_set():
            return Finished(exercise, "", None)
        return Finished(exercise, digest, result)


class Files:
    """Says that something was saved, and which exercise.

    watchfiles only wakes the main loop; what changed is found by looking, which
    also works where there are no events (network drives, too many watches).
    """

    def __init__(
        self, folder: Path, catalog: list[Exercise], events: queue.SimpleQueue
    ):
        self.folder, self.catalog, self.events = folder, catalog, events
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._last = self._stats()

    def __enter__(self) -> Files:
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        self._stop.set()
        self._thread.join(2)

    def _listen(self) -> None:
        try:
            from watchfiles import watch

            changes = watch(
                self.folder,
                watch_filter=None,
                debounce=100,
                step=20,
                stop_event=self._stop,
                rust_timeout=200,
                raise_interrupt=False,
                recursive=False,
            )
            for _ in changes:
                self.events.put(("saved", None))
        except Exception:  # no events here: the main loop looks by itself
            return

    def _stats(self) -> dict[str, tuple | None]:
        return {exercise.name: _stat(exercise.path) for exercise in self.catalog}

    def newly_saved(self) -> list[Exercise]:
        """The exercises whose files changed since the last call."""
        before, self._last = self._last, self._stats()
        return [e for e in self.catalog if self._last[e.name] != before[e.name]]

    def forget(self) -> None:
        """Take the files as they are now for known."""
        self._last = self._stats()


def _stat(path: Path) -> tuple | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


class Keys:
    """Single keys from the terminal, whose mode is put back on every way out.

    Without a terminal, or in the background of one, there are no keys.
    """

    def __init__(self, events: queue.SimpleQueue):
        self.events = events
        self.active = False
        self._fd = -1
        self._saved: list | None = None
        self._line = ""

    def __enter__(self) -> Keys:
        try:
            self._fd = sys.stdin.fileno()
            if not (os.isatty(self._fd) and sys.stdout.isatty() and self._in_front()):
                return self
            self._saved = termios.tcgetattr(self._fd)
        except (OSError, ValueError, AttributeError, termios.error):
            return self
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        atexit.register(self.restore)
        self._before = {
            signal.SIGTSTP: signal.signal(signal.SIGTSTP, self._suspend),
            signal.SIGCONT: signal.signal(signal.SIGCONT, self._go_on),
        }
        self.active = True
        self._single_keys()
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        if not self.active:
            return
        self.active = False
        self.restore()
        atexit.unregister(self.restore)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.write(self._wake_write, b"x")
        self._thread.join(2)

    def draw(self, text: str) -> None:
        """One line that the next output overwrites (terminal only)."""
        if not self.active or text == self._line:
            return
        self._line = text
        columns = os.get_terminal_size(self._fd).columns if text else 0
        with contextlib.suppress(OSError):
            sys.stdout.write("\r\x1b[K" + text[: max(columns - 1, 0)])
            sys.stdout.flush()

    def restore(self) -> None:
        """The terminal as it was found."""
        if self._saved is not None:
            with contextlib.suppress(termios.error, OSError):
                if self._in_front():
                    termios.tcsetattr(self._fd, termios.TCSANOW, self._saved)

    def _single_keys(self) -> None:
        with contextlib.suppress(termios.error, OSError):
            if self._in_front():
                tty.setcbreak(self._fd, termios.TCSANOW)

    def _in_front(self) -> bool:
        """In the background, touching the terminal would stop the process."""
        return os.tcgetpgrp(self._fd) == os.getpgrp()

    def _suspend(self, number, frame) -> None:
        """Ctrl-Z: give the terminal back first, then really stop."""
        self.restore()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        self._go_on(number, frame)  # a process without a shell is not stopped

    def _go_on(self, number, frame) -> None:
        signal.signal(signal.SIGTSTP, self._suspend)
        self._single_keys()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while self.active:
                ready, _, _ = select.select([self._fd, self._wake_read], [], [])
                if self._wake_read in ready:
                    return
                if not self._in_front():
                    time.sleep(LOOK)
                    continue
                pressed = os.read(self._fd, 64)
                if not pressed or b"\x04" in pressed:  # the terminal ended, Ctrl-D
                    self.events.put(("key", "q"))
                    return
                letters = ARROWS.sub(b"", pressed).decode("ascii", "ignore")
                for char in letters.lower():
                    self.events.put(("key", char))


@contextlib.contextmanager
def signals_ask_to_leave(events: queue.SimpleQueue):
    """SIGINT, SIGTERM and SIGHUP become an event; a second one raises SystemExit.

    An exception raised from a handler is lost if it arrives in the wrong moment
    (while Python imports, for one); what is put into the queue is not. Either way
    the terminal is put back.
    """
    asked = False

    def ask(number, frame):
        nonlocal asked
        if asked:
            raise SystemExit(128 + number)
        asked = True
        events.put(("signal", number))

    before: dict[int, Callable | int | None] = {
        number: signal.signal(number, ask)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
