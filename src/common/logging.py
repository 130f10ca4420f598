"""Many ranks, one voice: what is printed, and how errors end, in a world of ranks.

    from common.logging import is_rank_0, no_bar, one_line_errors, say, short_name

A process that has not joined others is a world of one, and its rank is 0. So these
functions serve it, too. ``one_line_errors`` in cli.py knows of no others.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import ProcessExitedException
from tqdm import tqdm

from common import cli
from common.cli import PATIENCE, BadInput, speaks_first
from common.devices import describe, device_label

Result = TypeVar("Result")

# By default tqdm makes a lock between processes, about which Python warns at the end
# when a rank was killed. A line goes out in one piece anyhow: see cli.say.
tqdm.set_lock(threading.RLock())


def is_rank_0() -> bool:
    """Whether this process is the one that speaks, of all ranks on all nodes."""
    return not dist.is_initialized() or dist.get_rank() == 0


def world_size() -> int:
    """How many ranks there are; 1 for a process that has not joined others."""
    return dist.get_world_size() if dist.is_initialized() else 1


def short_name(device: torch.device) -> str:
    """Who speaks in a line of a log: ``CPU0``, or ``rank 0 of 2``."""
    if not dist.is_initialized():
        return device_label(device)
    return f"rank {dist.get_rank()} of {dist.get_world_size()}"


def describe_world(device: torch.device) -> str:
    """A sentence part on what computes, for the line that shows the configuration."""
    if not dist.is_initialized():
        return describe(device)
    return (
        f"{dist.get_world_size()} ranks, each on {describe(device)}, "
        f"backend {dist.get_backend()}"
    )


def log(line: str) -> None:
    """Print a line at once, on rank 0 only."""
    if is_rank_0():
        cli.say(line)


def no_bar() -> bool | None:
    """The ``disable`` of a tqdm bar: shown on rank 0's terminal, if it has one."""
    return None if is_rank_0() else True


def one_line_errors(main: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate what starts ranks, and what a rank does: one line, status 2.

    An error that all ranks find is said by rank 0. The others wait until they are
    ended because of it; only one that is still there after a while had an error of
    its own, and says it.
    """

    @functools.wraps(main)
    def guarded(*args, **kwargs) -> Result:
        try:
            return main(*args, **kwargs)
        except ProcessExitedException as error:
            if error.exit_code != 2:  # with 2, the rank itself has said why
                name = error.signal_name or f"exit status {error.exit_code}"
                _complain(f"rank {error.error_index} ended by {name}, so all end")
            sys.exit(error.exit_code if error.exit_code > 0 else 1)
        except BadInput as error:
            met = dist.is_initialized()  # a spawned rank knows its number only then
            if not (is_rank_0() if met else speaks_first()):
                time.sleep(PATIENCE)
            _complain(str(error))
            if met:
                # at once: ranks that are still inside a collective would hold up an
                # orderly end of the process group
                os._exit(2)
            sys.exit(2)

    return guarded


def run_and_exit(main: Callable[[], object]) -> NoReturn:
    """Run the ``main`` of a script that uses DTensor, and end the process with it.

    DTensor keeps device meshes in caches, and a mesh keeps its process group. So the
    threads of gloo live on after ``destroy_process_group()``; one that still holds a
    tensor when Python clears up aborts the process: "terminate called without an
    active exception" (torch 2.13). Here the system clears up, not Python.
    """
    status = 0
    try:
        main()
    except SystemExit as end:  # from sys.exit(2), or --help: 0 or None
        status = int(end.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _complain(sentence: str) -> None:
    program = os.path.basename(sys.argv[0])
    print(f"{program}: error: {sentence}", file=sys.stderr, flush=True)
