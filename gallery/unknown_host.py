"""MASTER_ADDR is a name that this machine can't look up."""

import os
from datetime import timedelta

import torch.distributed as dist

host = "node01.invalid"  # of rank 0
os.environ.update(MASTER_ADDR=host, MASTER_PORT="0")
limit = timedelta(seconds=2)
dist.init_process_group("gloo", timeout=limit, world_size=1, rank=0)
print(f"connected, {dist.get_world_size()} rank", flush=True)
dist.destroy_process_group()

# The cure: MASTER_ADDR is a name that this machine can look up.
#
# -host = "node01.invalid"  # of rank 0
# +host = "localhost"  # of rank 0
