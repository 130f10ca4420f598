"""A child process that is killed where the check wants it: at a byte, or at a call."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

# calls that can change what is on the disk; all others leave it as it is
STEPS = re.compile(
    "open|close|write|flush|fsync|fdatasync|sync|replace|rename|link|symlink|unlink|"
    "remove|truncate|ftruncate|copy_file_range|sendfile"
)


def in_child(action: Callable[[], Any]) -> tuple[int, Any]:
    """Run ``action`` in a child process; (signal that ended it or 0, its result).

    The result of one that raises is {"raised": what}.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = action()
        except BaseException as error:
            result = {"raised": f"{type(error).__name__}: {error}"[:200]}
        try:
            os.write(write_end, json.dumps(result).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status), json.loads(text) if text else None


def limit_files(size: int, kill: bool) -> None:
    """No file of this process may grow beyond ``size``: death, or an error."""
    answer = signal.SIG_DFL if kill else signal.SIG_IGN
    signal.signal(signal.SIGXFSZ, answer)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def kill_at_step(number: int) -> None:
    """Kill this process before or after one of its calls to the file system."""
    left = [number]

    def profile(_, event, function):
        if event in ("c_call", "c_return") and STEPS.fullmatch(function.__name__):
            left[0] -= 1
            if left[0] < 0:
                signal.raise_signal(signal.SIGKILL)

    sys.setprofile(profile)
