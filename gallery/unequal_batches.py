"""Rank 0 has one batch more than rank 1."""

from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
dist.group.WORLD.set_timeout(timedelta(seconds=4))
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 1))
batches = torch.randn(3, 8, 4) if rank == 0 else torch.randn(2, 8, 4)

for step, batch in enumerate(batches, start=1):
    model(batch).mean().backward()
    print(f"rank {rank}: step {step}", flush=True)
dist.barrier()
print(f"rank {rank}: done", flush=True)
del model
dist.destroy_process_group()

# The cure: Rank 0 has one batch more than rank 1, which answers with zeros until it's
# done.
#
# -for step, batch in enumerate(batches, start=1):
# -    model(batch).mean().backward()
# -    print(f"rank {rank}: step {step}", flush=True)
# +with model.join():
# +    for step, batch in enumerate(batches, start=1):
# +        model(batch).mean().backward()
# +        print(f"rank {rank}: step {step}", flush=True)
