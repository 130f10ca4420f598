"""One rank reads a whole file, and the kernel kills it: no line of Python says why."""

import os
import signal
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS, FILE, ALLOWED = 2, 40_000_000, 10_000_000  # bytes


def read(size: int) -> torch.Tensor:
    """Play the kernel, which kills a process that takes more than its job asked for."""
    if size > ALLOWED:
        os.kill(os.getpid(), signal.SIGKILL)
    return torch.ones(size, dtype=torch.uint8)


def run_rank(rank: int, folder: str) -> None:
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=RANKS)
    total = torch.zeros((), dtype=torch.int64)
    if rank == 1:
        total += read(FILE).sum()
    dist.all_reduce(total)  # every rank
    print(f"rank {rank}: {total.item():,} bytes read\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run_rank, args=(folder,), nprocs=RANKS)

# The cure: One rank reads a file in parts, and never holds more than its job may.
#
# -        total += read(FILE).sum()
# +        for _ in range(FILE // ALLOWED):
# +            total += read(ALLOWED).sum()
