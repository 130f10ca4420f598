"""Where a rank is: told by a thread beside the one that runs the check."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import os
import re
import select
import sys
import threading
import time
import traceback
from typing import Any

from workshop.grader import expect
from workshop.grader.engine.channel import (
    BEAT,
    CALLS,
    CPU,
    IMPORTS,
    IN_COMM,
    JOINING,
    PHASE,
    REPORTED,
    Reporter,
)
from workshop.grader.engine.handed import Calls
from workshop.grader.ledger import works
from workshop.grader.ledger.ledger import GRADER, TORCH, Ledger
from workshop.grader.verdicts.outcome import Job

BEAT_SECONDS = 0.04
ENDS_WITHIN = 0.3  # seconds in which a thread that has done its work is gone

_exit = os._exit  # leaving.py puts another one in its place, which reports
_DISTRIBUTED = os.path.join(TORCH, "distributed") + os.sep
_DDP = os.path.join(TORCH, "nn", "parallel", "distributed.py")
_FUNCTION = os.path.join(TORCH, "autograd", "function.py")
_IMPORT = "<frozen importlib"
_WAITS = re.compile(r"\b(wait|synchronize|value|get)\(")


class Watcher:
    """The thread that watches the main thread of its rank.

    Args:
        state: the rank's numbers that it shares with the supervisor.
    """

    def __init__(self, job: Job, state, reporter: Reporter, ledger: Ledger):
        self.job, self.state, self.reporter, self.ledger = job, state, reporter, ledger
        self.path = job.exercise_path
        self.main_thread = threading.main_thread().ident or 0

    def start(self) -> None:
        threading.Thread(target=self.watch, name="watcher", daemon=True).start()

    def watch(self) -> None:
        """Tell the supervisor 25 times a second whether this rank communicates.

        Answers its requests, too; ends the rank when it is gone.
        """
        channel = self.reporter.channel
        while True:
            self._beat()
            ready, _, _ = select.select([channel], [], [], BEAT_SECONDS)
            if not ready:
                continue
            command = channel.recv(64)
            if not command:
                _exit(0)
            if self.state[PHASE] != REPORTED:
                self.reporter.send(self._snapshot())

    def _beat(self) -> None:
        state = self.state
        # a busy machine may join them late: that is no deadlock of the learner
        frame = self._main_frame()
        waits = state[PHASE] != JOINING and communicates(frame)
        state[IN_COMM] = 1.0 if waits else 0.0
        state[IMPORTS] = 1.0 if imports(frame, self.path) else 0.0
        state[CALLS] = float(len(self.ledger.rows))
        # without what this thread itself uses, which is no sign of life
        state[CPU] = time.process_time() - time.thread_time()
        state[BEAT] = time.monotonic()

    def _main_frame(self):
        return sys._current_frames().get(self.main_thread)

    def _snapshot(self) -> dict[str, Any]:
        """Where the main thread is, for the verdict on a rank that did not end."""
        frame = self._main_frame()
        stack = [
            {
                "file": os.path.basename(f.f_code.co_filename),
                "line": number,
                "function": f.f_code.co_name,
                "own": f.f_code.co_filename == self.path,
                "check": f.f_code.co_filename == self.job.check_path,
            }
            for f, number in traceback.walk_stack(frame)
            if not f.f_code.co_filename.startswith(GRADER)
        ]
        return {
            "status": "stuck",
            "phase": self.state[PHASE],
            "in_comm": communicates(frame),
            "passed": expect.passed,
            "entered": Calls.entered,
            "ended_by": Calls.ended_by,
            "inside": Calls.inside,
            "ledger": self.ledger.report(),
            "unwaited": self.ledger.works.unwaited(),
            "waits_for": self.ledger.waits_for(),
            "calls": len(self.ledger.rows),
            "stack": stack[:40],
            **learners_frame(frame, self.path),
        }


def learners_frame(frame, path: str) -> dict[str, Any]:
    """Line and text of the innermost frame in the learner's file."""
    for f, number in traceback.walk_stack(frame):
        if f.f_code.co_filename == path:
            text = linecache.getline(path, number or 0).strip()
            return {"line": number, "text": text[:200]}
    return {"line": None, "text": ""}


def communicates(frame) -> bool:
    """Whether the innermost frames, up to the first outside torch, communicate.

    ``work.wait()`` is C code called from the learner's own line, so that line is
    read; a backward pass may wait for DDP's buckets.
    """
    if frame is None:
        return False
    # a frame seen from another thread may be between two lines: its number is None
    first = True
    for f, number in traceback.walk_stack(frame):
        name = f.f_code.co_filename
        if name == works.__file__:  # somebody asks a Work for its end
            return True
        if name.startswith(_DISTRIBUTED) or f.f_code.co_name == "_engine_run_backward":
            return True
        if not name.startswith(TORCH):
            return first and bool(_WAITS.search(linecache.getline(name, number or 0)))
        if first and name == _DDP:  # it broadcasts buffers by C++ alone
            return True
        first = False
    return False


def imports(frame, path: str) -> bool:
    """Whether the file ``path`` imports a module, which is slow from a slow disk."""
    while frame is not None and frame.f_code.co_filename != path:
        if frame.f_code.co_filename.startswith(_IMPORT):
            return True
        frame = frame.f_back
    return False


def of_autograd(frame) -> str:
    """The part of a pass whose C++ code ``frame`` calls, or ""."""
    code = frame.f_code
    if code.co_name == "_engine_run_backward":
        return "the backward pass"
    # it runs forward of a class of the learner, and takes what that saved and returned
    is_function = code.co_name == "apply" and code.co_filename == _FUNCTION
    return "the forward pass" if is_function else ""


def stands_in(error: BaseException, path: str) -> bool:
    """Whether ``error`` comes from below a stand-in: a function of the file ``path``.

    Such a function takes any arguments (``*args``) and hands them on.
    """
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [code for code in codes if code.co_filename == path]
    below = codes[-1].co_filename != path
    return below and bool(own and own[-1].co_flags & inspect.CO_VARARGS)


def threads_left(main: int) -> list[str]:
    """The names of the threads that still run, except those that end right now."""
    threads = [
        thread
        for thread in threading.enumerate()
        if thread.ident != main and not thread.daemon
    ]
    for thread in threads:
        with contextlib.suppress(RuntimeError):  # it has not started yet
            thread.join(ENDS_WITHIN / len(threads))
    return [thread.name for thread in threads if thread.is_alive()]
