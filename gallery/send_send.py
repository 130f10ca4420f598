"""Both ranks send first, so neither receives."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
rank = dist.get_rank()
mine, theirs = torch.full((4,), float(rank)), torch.empty(4)

dist.send(mine, 1 - rank)
dist.recv(theirs, 1 - rank)
print(f"rank {rank}: received {theirs[0]:.0f}", flush=True)
dist.destroy_process_group()
