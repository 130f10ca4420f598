"""The launcher says how many ranks there are."""

import os
from datetime import timedelta

import torch.distributed as dist

WORLD_SIZE = int(os.environ["WORLD_SIZE"])
dist.init_process_group(
    "gloo",
    rank=int(os.environ["RANK"]),
    world_size=WORLD_SIZE,
    timeout=timedelta(seconds=5),
)
dist.barrier()
print(f"connected, {dist.get_world_size()} ranks", flush=True)
dist.destroy_process_group()
