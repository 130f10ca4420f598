"""The supervisor's side of one rank, and the time that its ranks have had."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path

from grader.engine import processes

PATIENCE = 20  # limits by the clock: no machine is that busy
SKIPPED_AT_MOST = 60.0  # seconds: a module may also wait for ever
BETWEEN_LOOKS = 0.1  # seconds; a look reads a file for each thread
KEPT = 32_000  # bytes of output kept from each end, per rank


class RankProcess:
    """The supervisor's side of one rank."""

    def __init__(self, number: int, pid: int, channel: socket.socket, output: int):
        self.number, self.pid = number, pid
        self.channel, self.output = channel, output
        self.buffer = b""
        self.report: dict | None = None  # its final word
        self.leaving: dict | None = None  # "I am calling os._exit"
        self.stuck: dict | None = None  # its answer to "where are you?"
        self.calls: list[dict] = []  # its first ones, should it crash
        self.ended: int | None = None  # exit status, negative for a signal
        self.head, self.tail, self.printed = b"", b"", 0
        self.active_at = time.monotonic()
        self.mark = (-1.0, -1.0)  # CPU seconds and calls when last active

    @property
    def live(self) -> bool:
        return self.report is None and self.ended is None

    @property
    def resident(self) -> int:
        """Bytes of memory, less those of torch itself, which ranks share."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * mmap.PAGESIZE - 400_000_000

    def read_messages(self) -> None:
        try:
            data = self.channel.recv(1 << 20)
        except (BlockingIOError, ConnectionResetError):
            return
        self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            # the learner's code may write into any descriptor, also into this one
            with contextlib.suppress(ValueError, TypeError, KeyError):
                self._take(json.loads(line))

    def _take(self, message: dict) -> None:
        status = message["status"]
        if status == "leaving":
            self.leaving = message
        elif status == "call":
            self.calls.append(message["row"])
        elif status == "stuck":
            self.stuck = message
        elif self.report is None:
            self.report = message

    def read_output(self) -> bool:
        """Take what it printed; False at the end of the pipe."""
        try:
            data = os.read(self.output, 1 << 18)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.printed += len(data)
        room = KEPT - len(self.head)
        self.head += data[:room] if room > 0 else b""
        self.tail = (self.tail + data[max(room, 0) :])[-KEPT:]
        return bool(data)

    def text(self) -> str:
        """What it printed, undecodable bytes replaced, the middle left out."""
        dropped = self.printed - len(self.head) - len(self.tail)
        gap = f"\n... {dropped:,} bytes left out ...\n".encode() if dropped > 0 else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


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
        """Leave out the time since the last look, if not too much is left out by now."""
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
