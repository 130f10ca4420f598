"""Rank 1 skips a layer, so DDP waits for gradients that are never computed."""

from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.extra = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        x = self.first(x)
        return self.extra(x) if dist.get_rank() == 0 else x


dist.init_process_group("gloo")
dist.group.WORLD.set_timeout(timedelta(seconds=4))
rank = dist.get_rank()
model = DDP(Model())
for step in (1, 2):
    model(torch.randn(8, 4)).mean().backward()
    print(f"rank {rank}: step {step}", flush=True)
del model
dist.destroy_process_group()

# The cure: Rank 1 skips a layer, and DDP has to look for what has no gradient.
#
# -model = DDP(Model())
# +model = DDP(Model(), find_unused_parameters=True)
