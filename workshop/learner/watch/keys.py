"""The terminal of ``workshop watch``: single keys, and one line to draw on."""

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

LOOK = 0.5  # seconds between two looks, in the background of a terminal
# What arrow and function keys send: the letters in it are no keys.
ARROWS = re.compile(rb"\x1b(?:\[[0-9;?]*[ -~]|O[ -~])?")


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
