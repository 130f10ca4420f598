"""End many runs of four ranks, with DDP released first or not, and count bad ends.

    python src/instruments/07_teardown.py usual --runs 10
    python src/instruments/07_teardown.py released_first --runs 10

The exit status is 0 however many runs end badly. Linux only: the ranks are forked from
one process that has imported PyTorch and never computes, so a run takes a fraction of a
second instead of five.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch._dynamo  # DDP imports it in its first run; do it once here
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import Parser, log, one_line_errors, positive_int

RANKS = 4
PATIENCE = 2  # if all ranks sleep for this many seconds, they hang


def train_a_step(ddp_model: DDP) -> None:
    ddp_model(torch.ones(2, 4)).sum().backward()


def usual() -> None:
    """DDP is a local variable of the function that destroys the group."""
    ddp_model = DDP(nn.Linear(4, 4))
    train_a_step(ddp_model)
    dist.destroy_process_group()  # ddp_model still exists


def released_first() -> None:
    """DDP lives in a function that has returned."""

    def train() -> None:
        train_a_step(DDP(nn.Linear(4, 4)))

    train()
    dist.destroy_process_group()  # no DDP object is left


SHAPES = {"usual": usual, "released_first": released_first}


def start(rank: int, shape: str, store: str) -> int:
    """Fork one rank and return its process number."""
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # hide the messages of aborts
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo",
            init_method=f"file://{store}",
            rank=rank,
            world_size=RANKS,
            timeout=timedelta(seconds=60),
        )
        SHAPES[shape]()
        sys.exit(0)  # the exit of Python is part of the trial
    return pid


def main_thread(pid: int) -> tuple[str, list[str]]:
    """What Linux says about it: S for asleep, and the CPU time that it used.

    Only the main thread counts: gloo's threads poll even when a rank hangs.
    """
    with open(f"/proc/{pid}/task/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return fields[0], fields[11:13]


def end_of_run(shape: str, store: str) -> str:
    """Wait for four ranks: "well", "aborts", or "hangs" (and then they are killed)."""
    running = [start(rank, shape, store) for rank in range(RANKS)]
    end, before, since = "well", None, time.monotonic()
    while running:
        for pid in list(running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                running.remove(pid)
                end = end if status == 0 else "aborts"
        now = [main_thread(pid) for pid in running]
        if now != before or any(state != "S" for state, _ in now):
            before, since = now, time.monotonic()
        if time.monotonic() > since + PATIENCE:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            return "hangs"
        time.sleep(0.005)
    return end


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--runs", type=positive_int, default=10)
    args = parser.parse_args()
    gc.freeze()  # the garbage collector of a rank skips what it inherits
    folder = tempfile.mkdtemp()  # not in a `with`: each rank would remove it
    ends = [end_of_run(args.shape, f"{folder}/store{run}") for run in range(args.runs)]
    shutil.rmtree(folder)
    log(
        f"{args.shape}: of {args.runs} runs {ends.count('well')} end well, "
        f"{ends.count('hangs')} hang, {ends.count('aborts')} abort"
    )


if __name__ == "__main__":
    main()
