"""Only rank 0 computes the mean loss that it prints."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.group.WORLD.set_timeout(timedelta(seconds=4))
rank, world_size = dist.get_rank(), dist.get_world_size()
loss = torch.tensor(1.0 + rank)

if rank == 0:
    dist.all_reduce(loss)
    print(f"mean loss {loss / world_size:.2f}", flush=True)
dist.barrier()
dist.destroy_process_group()

# The cure: All ranks compute the mean loss that rank 0 prints.
#
# +dist.all_reduce(loss)
#  if rank == 0:
# -    dist.all_reduce(loss)
