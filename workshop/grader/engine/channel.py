"""How a rank and its supervisor talk: shared numbers, and lines of JSON.

A rank sends messages, each an object with a ``status``. While the check runs, ``call``
has a row of the ledger, and ``leaving`` the line that ends the process. Asked where it
is, a rank answers ``stuck``. Its last message is ``ok``, ``mismatch``, ``raised``,
``exit`` or ``broken``: a rank that ends without one has never passed.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any

# The rank's row in the memory it shares with the supervisor (float64 each).
IN_COMM, CALLS, PHASE, CPU, BEAT, IMPORTS, FIELDS = 0, 1, 2, 3, 4, 5, 6
STARTING, LOADING, JOINING, CHECKING, REPORTED = 0.0, 1.0, 2.0, 3.0, 4.0


class Reporter:
    """Sends messages to the supervisor, from this process only.

    A process that the learner's code forks inherits the socket; anything it
    would report is dropped, and it ends.
    """

    def __init__(self, channel: socket.socket):
        self.channel, self._pid, self._lock = channel, os.getpid(), threading.RLock()

    @property
    def from_this_process(self) -> bool:
        """False in a process that the learner's code forked."""
        return os.getpid() == self._pid

    def send(self, message: dict[str, Any]) -> None:
        if not self.from_this_process:
            os._exit(0)
        line = json.dumps(message, default=str) + "\n"
        with self._lock:  # a rank's second thread answers questions meanwhile
            self.channel.sendall(line.encode())


def receive_line(sock: socket.socket) -> bytes:
    """Everything up to a line feed (a message is one line of JSON)."""
    parts = []
    while True:
        part = sock.recv(1 << 20)
        parts.append(part)
        if not part or part.endswith(b"\n"):
            return b"".join(parts)
