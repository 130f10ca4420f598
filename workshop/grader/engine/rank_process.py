"""The supervisor's side of one rank."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socket
from pathlib import Path

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
