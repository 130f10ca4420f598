"""What a rank may use: its process group, limits, environment, folder, output."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pdb
import resource
import signal
import sys
from pathlib import Path

from workshop.grader.engine import isolation
from workshop.grader.verdicts.outcome import Job

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def enter(job: Job, rank: int, output: int) -> None:
    """Own process group, limits, environment, folder and output of a rank."""
    os.setpgid(0, 0)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115, open while the rank lives
    sys.stdout = open(1, "w", closefd=False, buffering=1, errors="replace")  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="replace")  # noqa: SIM115
    os.chdir(job.folder)
    if job.isolated:
        isolation.confine()
    sys.argv = [job.exercise]
    sys.path.append(job.folder)
    crash = open(os.path.join(job.private, f"crash{rank}"), "w")  # noqa: SIM115
    stack = open(os.path.join(job.private, f"stack{rank}"), "w")  # noqa: SIM115
    faulthandler.enable(crash, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_FSIZE, job.file_bytes)
    _limit(resource.RLIMIT_DATA, _data_bytes() + job.memory_bytes)
    for name in [n for n in os.environ if n.startswith(("SLURM_", "OMPI_", "PMI"))]:
        del os.environ[name]
    os.environ.update(_place(rank, job.world_size))
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29500"
    pdb.set_trace = pdb.Pdb.set_trace = _refuse_a_debugger


def _refuse_a_debugger(*_: object, **__: object) -> None:
    """For a ``breakpoint()`` that was left in: it would end in a bare ``BdbQuit``."""
    cure = "a rank has no keyboard: remove `breakpoint()`"
    raise EOFError(f"this starts a debugger, but {cure}")


def _place(rank: int, world_size: int) -> dict[str, str]:
    """What a launcher tells: more than two ranks are on nodes of two ranks each."""
    on_node = 2 if world_size > 2 else world_size
    node_rank, local_rank = divmod(rank, on_node)
    here = min(on_node, world_size - node_rank * on_node)
    told = {
        "RANK": rank,
        "LOCAL_RANK": local_rank,
        "GROUP_RANK": node_rank,
        "WORLD_SIZE": world_size,
        "LOCAL_WORLD_SIZE": here,
    }
    return {name: str(number) for name, number in told.items()}


def _limit(which: int, amount: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        amount = min(amount, hard)
    resource.setrlimit(which, (amount, amount))


def _data_bytes() -> int:
    """The private writable memory this process has already."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0
