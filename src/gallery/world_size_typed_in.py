"""The world size is a number in the program, from a larger machine."""

import os
from datetime import timedelta

import torch.distributed as dist

WORLD_SIZE = 4
dist.init_process_group(
    "gloo",
    rank=int(os.environ["RANK"]),
    world_size=WORLD_SIZE,
    timeout=timedelta(seconds=5),
)
dist.barrier()
print(f"connected, {dist.get_world_size()} ranks", flush=True)
dist.destroy_process_group()
