"""How a rank and its supervisor talk: shared numbers, and lines of JSON."""

from __future__ import annotations

import os
import socket
import threading
from _json import encode_basestring_ascii, make_encoder
from collections.abc import Callable
from typing import Any

# The rank's row in the memory it shares with the supervisor (float64 each).
IN_COMM, CALLS, PHASE, CPU, BEAT, FIELDS = 0, 1, 2, 3, 4, 5
STARTING, LOADING, JOINING, CHECKING, REPORTED = 0.0, 1.0, 2.0, 3.0, 4.0

# Taken now, and none of them Python: what a learner's file puts in the place of
# json.dumps or socket.sendall never sees a report, nor its secret.
_exit, _write = os._exit, os.write
_encode = make_encoder(
    None, str, encode_basestring_ascii, None, ": ", ", ", False, False, True
)


class Reporter:
    """Sends JSON lines to the supervisor, from this process only.

    Each carries a secret: what a learner's code writes into the channel lacks it.
    A process that the learner's code forks inherits the socket; anything it
    would report is dropped, and it ends.
    """

    def __init__(self, channel: socket.socket, secret: str):
        self.channel, self._pid, self._lock = channel, os.getpid(), threading.RLock()
        self._secret, self._descriptor = secret, channel.fileno()

    @property
    def from_this_process(self) -> bool:
        """False in a process that the learner's code forked."""
        return os.getpid() == self._pid

    def send(self, message: dict[str, Any]) -> None:
        self.sender()(message)

    def sender(self, secret: str = "") -> Callable[[dict[str, Any]], None]:
        """What sends a message by itself; with this secret instead, a rank's last word.

        A Reporter in the hands of a learner's code doesn't have that secret, and no
        variable has what sends the last word: see :func:`grader.engine.rank.main`.
        """
        own = secret or self._secret
        return _sender(self._descriptor, own, self._lock, self._pid)


def _sender(descriptor: int, secret: str, lock: Any, pid: int) -> Callable:
    """All that it calls is its own: a module's names may be replaced meanwhile."""
    encode, write, leave, this_process = _encode, _write, _exit, os.getpid

    def send(message: dict[str, Any]) -> None:
        if this_process() != pid:
            leave(0)
        signed = message | {"secret": secret}
        data = "".join(encode(signed, 0)).encode("utf-8", "replace") + b"\n"
        with lock:
            while data:
                data = data[write(descriptor, data) :]

    return send


def receive_line(sock: socket.socket) -> bytes:
    """Everything up to a line feed (a message is one line of JSON)."""
    parts = []
    while True:
        part = sock.recv(1 << 20)
        parts.append(part)
        if not part or part.endswith(b"\n"):
            return b"".join(parts)
