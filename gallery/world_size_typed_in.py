"""The world size is a number in the program, from a larger machine."""

import os
from datetime import timedelta

import torch.distributed as dist

WORLD_SIZE = 4
rank = int(os.environ["RANK"])
print(f"rank {rank} of {WORLD_SIZE}", flush=True)
dist.init_process_group(
    "gloo",
    rank=rank,
    world_size=WORLD_SIZE,
    timeout=timedelta(seconds=5),
)
dist.barrier()
print(f"connected, {dist.get_world_size()} ranks", flush=True)
dist.destroy_process_group()

# The cure: The launcher says how many ranks there are.
#
# -WORLD_SIZE = 4
# +WORLD_SIZE = int(os.environ["WORLD_SIZE"])
