"""The time that processes have had: on a busy machine less than has passed."""

from __future__ import annotations

import time
from collections.abc import Iterable

from workshop.system import processes

PATIENCE = 20  # limits by the clock: no machine is that busy
SKIPPED_AT_MOST = 60.0  # seconds: a module may also wait forever
BETWEEN_LOOKS = 0.1  # seconds; a look reads a file for each thread


class Stopwatch:
    """Seconds from now on, less those for which processes wait for a core, or skipped.

    The processes, ``pids``, wait for each other: while one of them waits for a core,
    all do. So of each moment the longest wait is taken off, of any of them.
    """

    def __init__(self, pids: Iterable[int] = (), every: float = BETWEEN_LOOKS):
        self.every = every  # seconds between two looks at the processes
        self.start = self.looked = time.monotonic()
        self.waited = {pid: processes.waited_for_a_core(pid) for pid in pids}
        self.seconds = self.skipped = 0.0

    def skip(self) -> None:
        """Leave out the time since the last look, up to SKIPPED_AT_MOST in all."""
        now = time.monotonic()
        if self.skipped < SKIPPED_AT_MOST:
            self.skipped += now - self.looked
            self.looked = now

    def passed(self, limit: float, pids: Iterable[int]) -> bool:
        """Whether all had ``limit`` seconds, or the clock PATIENCE times as many."""
        now = time.monotonic()
        if now - self.start > PATIENCE * limit:
            return True
        if now - self.looked < self.every:
            return False
        waited = {pid: processes.waited_for_a_core(pid) for pid in pids}
        longer = [waited[pid] - self.waited.get(pid, 0.0) for pid in waited]
        longest = max(longer, default=0.0)
        self.seconds += max(0.0, now - self.looked - longest)
        self.looked, self.waited = now, waited
        return self.seconds > limit


class TreeStopwatch:
    """Seconds that a process and those below it had, also those that have ended since.

    They are the seconds on a core, and those in which none was ready for one. What is
    left out is the time for which one was ready while others had the cores. A job
    script starts many short programs, whose waits end with them: so each look asks for
    their states, and for core seconds, which a process takes over from its children.
    """

    def __init__(self, root: int):
        self.root = root
        self.start = self.looked = time.monotonic()
        self.idle = 0.0
        self.on_core = 0.0

    def passed(self, limit: float) -> bool:
        """Whether they had ``limit`` seconds, or the clock PATIENCE times as many."""
        now = time.monotonic()
        if now - self.start > PATIENCE * limit:
            return True
        living, _ = processes.below(self.root)
        tree = [self.root, *living]
        if not any(processes.state_of(pid) in "RD" for pid in tree):
            self.idle += now - self.looked
        self.looked = now
        core_seconds = sum(processes.core_seconds(pid) for pid in tree)
        self.on_core = max(self.on_core, core_seconds)
        return self.idle + self.on_core > limit
