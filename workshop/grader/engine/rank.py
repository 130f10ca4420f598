"""The process of one rank: made ready, runs a session, reports, waits for its end.

The supervisor forks this process from a warm parent that has imported torch and
never computed. The rank reports over a socket and then stays alive until the
supervisor ends it, so that no other rank ever sees "connection closed by peer"
because of one that was merely quicker. It leaves by ``os._exit``: destructors of
process groups, which can hang, are never run.
"""

from __future__ import annotations

import os
import threading
import traceback
from typing import Any

import torch

from workshop.grader.engine import sandbox
from workshop.grader.engine.channel import Reporter
from workshop.grader.engine.session import Session
from workshop.grader.engine.told import MAX_MESSAGE
from workshop.grader.engine.whereabouts import Watcher
from workshop.grader.verdicts.outcome import Job

_exit = os._exit  # leaving.py puts another one in its place, which reports


def main(job: Job, rank: int, reporter: Reporter, output: int, state) -> None:
    """Run the job's check as ``rank`` and report; never returns.

    Args:
        reporter: of this process, to the supervisor.
        output: file descriptor that becomes stdout and stderr.
        state: this rank's ``FIELDS`` float64 numbers, shared with the supervisor.
    """
    try:
        reporter.send(_report(job, rank, reporter, output, state))
        threading.Event().wait()  # until the supervisor ends this rank
    finally:
        _exit(70)


def _report(
    job: Job, rank: int, reporter: Reporter, output: int, state
) -> dict[str, Any]:
    try:
        _make_the_thread_pool()
        sandbox.enter(job, rank, output)
        session = Session(job, rank, state, reporter)
        Watcher(job, state, reporter, session.ledger).start()
        return session.run()
    except BaseException as error:  # a fault of the grader, never of the learner
        text = "".join(traceback.format_exception(error))[-MAX_MESSAGE:]
        return {"status": "broken", "message": text}


def _make_the_thread_pool() -> None:
    """Make torch's pool of threads while this process has one thread.

    A forked process makes its own on first use. Builds with CUDA start threads of
    autograd that do so side by side, and now and then one finds none ("Invalid thread
    pool!") and aborts the rank.
    """
    torch.set_num_threads(1)
