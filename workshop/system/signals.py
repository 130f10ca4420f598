"""Ctrl-C and its like, for commands that write or draw before they end."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ending_signals(handler: Callable | signal.Handlers) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP go to ``handler``, if this is the main thread."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in ENDING_SIGNALS:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def first_asks(
    ask: Callable[[int], None], error: Callable[[int], BaseException]
) -> Callable:
    """A handler: the first signal calls ``ask``, a second one raises ``error``.

    An exception raised from a handler is lost if it arrives in the wrong moment
    (while Python imports, for one); what ``ask`` puts into a queue is not.
    """
    asked = False

    def handler(number, frame) -> None:
        nonlocal asked
        if asked:
            raise error(number)
        asked = True
        ask(number)

    return handler
