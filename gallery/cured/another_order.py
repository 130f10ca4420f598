"""All ranks call the same collectives in the same order."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.group.WORLD.set_timeout(timedelta(seconds=4))
rank = dist.get_rank()
settings, loss = torch.ones(3), torch.tensor(1.0 + rank)

dist.broadcast(settings, src=0)
dist.all_reduce(loss)
print(f"rank {rank}: sum {loss:.0f}", flush=True)
dist.destroy_process_group()
