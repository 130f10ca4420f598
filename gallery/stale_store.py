"""A run joins through the file that a killed run has left behind."""

import multiprocessing
import os
import sys
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist


def train(rank: int, meeting: str, killed: bool) -> None:
    limit = timedelta(seconds=1)
    dist.init_process_group("gloo", f"file://{meeting}", limit, 2, rank)
    total = torch.ones(1)
    dist.all_reduce(total)
    if killed:
        os._exit(1)  # nothing cleans up: the file stays
    print(f"rank {rank}: sum {total.item():.0f}\n", end="", flush=True)
    dist.destroy_process_group()


def run(meeting: str, killed: bool) -> bool:
    """Start two ranks, wait for them, and say whether both ended well."""
    settings = [(rank, meeting, killed) for rank in (0, 1)]
    ranks = [multiprocessing.Process(target=train, args=each) for each in settings]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    return all(rank.exitcode == 0 for rank in ranks)


if __name__ == "__main__":
    for _ in range(10):  # by luck of the ports, about one next run of three connects
        with tempfile.TemporaryDirectory() as folder:
            run(f"{folder}/meeting", killed=True)
            print("the next run", flush=True)
            if not run(f"{folder}/meeting", killed=False):
                sys.exit(1)

# The cure: Each run joins through a file of its own.
#
# -    for _ in range(10):  # by luck of the ports, about one next run of three connects
# +    for _ in range(10):
# @@
# -            if not run(f"{folder}/meeting", killed=False):
# +            if not run(f"{folder}/next-meeting", killed=False):
