"""End many runs of four ranks, with DDP released first and not; count the bad ends.

    python src/07_teardown.py usual --runs 20
    python src/07_teardown.py released_first --runs 20

Exit status 0, however many end badly: that is what is to be seen. Linux only: the ranks
are forked from one process that has imported PyTorch and never computes, so that a run
takes a fraction of a second and not five.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from datetime import timedelta

import torch
import torch._dynamo  # DDP imports it in its first run: here, once for all ranks
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from common.distributed import Parser, log, one_line_errors, positive_int

RANKS = 4
PATIENCE = 2  # seconds in which all ranks sleep: they hang


def train_a_step(ddp_model: DDP) -> None:
    ddp_model(torch.ones(2, 4)).sum().backward()


def usual() -> None:
    """DDP is a local of the function that leaves the group."""
    ddp_model = DDP(nn.Linear(4, 4))
    train_a_step(ddp_model)
    dist.destroy_process_group()  # ddp_model is still there


def released_first() -> None:
    """DDP lives in a function that has returned."""

    def train() -> None:
        train_a_step(DDP(nn.Linear(4, 4)))

    train()
    dist.destroy_process_group()  # nothing of DDP is left


SHAPES = {"usual": usual, "released_first": released_first}


def start(rank: int, shape: str, store: str) -> int:
    """Fork one rank; returns its process."""
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the messages of those that abort
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo",
            init_method=f"file://{store}",
            rank=rank,
            world_size=RANKS,
            timeout=timedelta(seconds=60),
        )
        SHAPES[shape]()
        sys.exit(0)  # the end of Python belongs to the trial
    return pid


def main_thread(pid: int) -> tuple[str, list[str]]:
    """What Linux says of it: S for asleep, and the processor time that it used.

    Of the main thread alone: gloo's look round from time to time, even when it hangs.
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
    parser.add_argument("--runs", type=positive_int, default=20)
    args = parser.parse_args()
    gc.freeze()  # ranks need not look at what they inherit
    folder = tempfile.mkdtemp()  # not in a `with`: the ranks would remove it, too
    ends = [end_of_run(args.shape, f"{folder}/store{run}") for run in range(args.runs)]
    shutil.rmtree(folder)
    log(
        f"{args.shape}: of {args.runs} runs {ends.count('well')} end well, "
        f"{ends.count('hangs')} hang, {ends.count('aborts')} abort"
    )


if __name__ == "__main__":
    main()
