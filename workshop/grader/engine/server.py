"""The warm process: imports torch once, never computes, forks a supervisor per run.

``torch._dynamo``, which DDP and torch.optim import on first use (a second per rank),
is imported before the first check that may need it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import NoReturn

import torch

from workshop.grader.engine import check_file, isolation, supervisor
from workshop.grader.engine.forkserver import QUICK_FORKS
from workshop.grader.verdicts.outcome import Outcome

PRELOAD = (
    "torch.testing",
    "pytest",
    "_pytest.assertion.rewrite",
    "workshop.grader.by_hand",  # from here on: what checks use of the grader
    "workshop.grader.compose",
    "workshop.cluster.jobs.scheduler",
    "workshop.grader.kills",
    "workshop.grader.loaders",
    "workshop.grader.races",
)
# Another second, for checks that need it; else when nothing has been asked for a while.
PRELOAD_LATER = (
    "torch._dynamo",
    "torch.distributed.checkpoint.state_dict",
    "torch.distributed.fsdp",
    "torch.distributed.nn.functional",
    "torch.distributed.pipelining",
    "torch.distributed.run",
    "torch.distributed.tensor.parallel",
    "torch.nn.parallel",
    "torch.optim",
    "torch.utils.data",
    "torch.utils.data.distributed",
    "torch.utils.serialization.config",
)
LONGEST_REQUEST = 1 << 16  # bytes: a path may be 4096 long, and more as JSON
IDLE = 2.0  # seconds without a request; a check may take that long


def serve(descriptor: int) -> None:
    """Import everything, say so, then fork a supervisor per request; never returns."""
    control = socket.socket(fileno=descriptor)
    for name in ("LD_PRELOAD", "PYTHONSTARTUP", *QUICK_FORKS):
        os.environ.pop(name, None)
    for name in PRELOAD:
        importlib.import_module(name)
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors
    gc.freeze()  # what is imported stays: no rank need look at it
    later = list(PRELOAD_LATER)
    threads = len(os.listdir("/proc/self/task"))
    exposed = isolation.probe()
    ready = {"torch": torch.__version__, "threads": threads, "exposed": exposed}
    control.send(json.dumps(ready).encode())
    while True:
        patience = IDLE if later else None
        ready, _, _ = select.select([control], [], [], patience)
        if not ready:
            _import(later.pop(0))
            continue
        message, descriptors, _, _ = socket.recv_fds(control, LONGEST_REQUEST, 1)
        if not message:
            os._exit(0)
        request = json.loads(message)
        while later and request["needs_all"]:
            _import(later.pop(0))
        with contextlib.suppress(Exception):  # each rank will raise it again
            check_file.prepare(request["checks"])
        if os.fork() == 0:
            control.close()
            _supervise(descriptors[0], isolated=not exposed)
        os.close(descriptors[0])


def _supervise(descriptor: int, isolated: bool) -> NoReturn:
    """The life of a supervisor, from the connection with its engine to its end."""
    status = 1
    client = socket.socket(fileno=descriptor)
    try:
        supervisor.supervise(client, isolated=isolated)
        status = 0
    except Exception as error:  # a fault of the grader, never of the learner
        client.sendall(Outcome(broken=repr(error)).as_line())
    finally:
        os._exit(status)


def _import(name: str) -> None:
    """Import a module that the ranks will use."""
    importlib.import_module(name)
    if name == "torch._dynamo":
        # init_process_group empties these caches: each rank would copy them to do so
        sys.modules[name].trace_rules.clear_lru_cache()
    gc.freeze()
