"""gloo uses a network interface that other nodes can't reach."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
store = dist.TCPStore("n1", 29500, 2, is_master=rank == 0)  # waits for both ranks

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
limit = timedelta(seconds=1)
dist.init_process_group("gloo", None, limit, world_size=2, rank=rank, store=store)
total = torch.ones(1)
dist.all_reduce(total)
print(f"rank {rank}: sum {total.item():.0f}\n", end="", flush=True)
dist.destroy_process_group()

# The cure: gloo uses the interface that leads to the other node.
#
# -os.environ["GLOO_SOCKET_IFNAME"] = "lo"
# +os.environ["GLOO_SOCKET_IFNAME"] = "eth0"
