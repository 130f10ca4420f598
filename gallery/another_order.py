"""Rank 0 sends its settings before the sum, the others expect the sum first."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.group.WORLD.set_timeout(timedelta(seconds=4))
rank = dist.get_rank()
settings, loss = torch.ones(3), torch.tensor(1.0 + rank)

if rank == 0:
    dist.broadcast(settings, src=0)
    dist.all_reduce(loss)
else:
    dist.all_reduce(loss)
    dist.broadcast(settings, src=0)
print(f"rank {rank}: sum {loss:.0f}", flush=True)
dist.destroy_process_group()

# The cure: All ranks call the same collectives in the same order.
#
# -if rank == 0:
# -    dist.broadcast(settings, src=0)
# -    dist.all_reduce(loss)
# -else:
# -    dist.all_reduce(loss)
# -    dist.broadcast(settings, src=0)
# +dist.broadcast(settings, src=0)
# +dist.all_reduce(loss)
