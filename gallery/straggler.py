"""Rank 1 needs 4 s for its first batch, and the others give up after 2 s."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.group.WORLD.set_timeout(timedelta(seconds=2))
rank = dist.get_rank()

for step in (1, 2):
    if rank == 1 and step == 1:
        time.sleep(4)  # reads its files for the first time, over the network
    loss = torch.tensor(1.0)
    dist.all_reduce(loss)
    print(f"rank {rank}: step {step}", flush=True)
dist.destroy_process_group()

# The cure: Rank 1 needs 4 s for its first batch, and the others wait that long.
#
# -dist.group.WORLD.set_timeout(timedelta(seconds=2))
# +dist.group.WORLD.set_timeout(timedelta(minutes=10))
