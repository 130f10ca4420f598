"""A run that was killed left its file store behind; the next one has its own."""

import os
import tempfile
import time
from datetime import timedelta

import torch.distributed as dist
import torch.multiprocessing as mp


def run_rank(rank, path, dies):
    limit = timedelta(seconds=5)
    url = f"file://{path}"
    dist.init_process_group(
        "gloo", init_method=url, world_size=2, rank=rank, timeout=limit
    )
    if dies:
        time.sleep(0.5)
        os._exit(0)  # as kill -9 does: nothing is cleaned up
    dist.barrier()
    print(f"rank {rank}: connected", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    for attempt, dies in enumerate((True, False)):
        path = f"{folder}/store-{attempt}"
        mp.start_processes(run_rank, (path, dies), nprocs=2, start_method="fork")
