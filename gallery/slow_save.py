"""Rank 0 saves for longer than the others' time-out."""

import time
from datetime import timedelta

import torch.distributed as dist


def save_snapshot():
    time.sleep(4)  # a large model and a busy file system


dist.init_process_group("gloo")
dist.group.WORLD.set_timeout(timedelta(seconds=2))
rank = dist.get_rank()

if rank == 0:
    save_snapshot()
dist.barrier()
print(f"rank {rank}: next epoch", flush=True)
dist.destroy_process_group()

# The cure: The barrier after the save has a time-out of its own.
#
#  rank = dist.get_rank()
# +patient = dist.new_group(timeout=timedelta(minutes=10))
# @@
# -dist.barrier()
# +dist.barrier(patient)
