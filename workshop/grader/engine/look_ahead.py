"""Runs of the next checks that begin while an earlier one still waits for its ranks.

A check mostly waits: for ranks that are late on purpose, for processes to start and
end. On two cores or more the next one can run meanwhile. The verdicts keep the order
of the checks, and what runs after one that isn't right is ended unseen.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor

from workshop.grader.checks import Check
from workshop.grader.verdicts.verdict import Verdict

AT_THE_SAME_TIME = 2


class Cancelled(Exception):
    """The run was ended by ``Engine.cancel``, or its verdict isn't wanted any more."""


class Ticket:
    """One run, which another thread can end before it begins and while it lasts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: socket.socket | None = None
        self.cancelled = False

    def begin(self, client: socket.socket) -> None:
        """From now on, ``cancel`` ends the run behind ``client``.

        Raises:
            Cancelled: it was called before.
        """
        with self._lock:
            if self.cancelled:
                raise Cancelled
            self._client = client

    def end(self) -> None:
        """The answer is there, or never will be: the socket will be closed."""
        with self._lock:
            self._client = None

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._client is not None:
                self._client.shutdown(socket.SHUT_RDWR)


def may_overlap(checks: list[Check]) -> bool:
    """Whether these checks may run side by side: with cores, without a scheduler."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return cores > 1 and not any(check.scheduler for check in checks)


def in_order(
    checks: list[Check], run: Callable[[Check, Ticket], Verdict], overlap: bool
) -> Generator[tuple[Check, Verdict], None, None]:
    """Each check with its verdict, in their order; close it to end what still runs."""
    if not overlap:
        for check in checks:
            yield check, run(check, Ticket())
        return
    waiting: deque[tuple[Check, Ticket, Future[Verdict]]] = deque()
    following = deque(checks)
    allowed = 1  # until a verdict was right: most wrong answers fail in the first check
    with ThreadPoolExecutor(AT_THE_SAME_TIME) as threads:
        try:
            while waiting or following:
                while following and len(waiting) < allowed:
                    check, ticket = following.popleft(), Ticket()
                    waiting.append((check, ticket, threads.submit(run, check, ticket)))
                check, _ticket, future = waiting[0]
                verdict = future.result()
                waiting.popleft()
                yield check, verdict
                allowed = AT_THE_SAME_TIME
        finally:
            for _check, ticket, _future in waiting:
                ticket.cancel()
