"""gloo has to use a network interface that this node doesn't have."""

import os
from datetime import timedelta

import torch.distributed as dist

os.environ["GLOO_SOCKET_IFNAME"] = "ib0"
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
limit = timedelta(seconds=3)
dist.init_process_group("gloo", timeout=limit, world_size=1, rank=0)
print(f"connected, {dist.get_world_size()} rank", flush=True)
dist.destroy_process_group()
