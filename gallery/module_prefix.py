"""The state dict of a DDP object doesn't fit the model that it wraps."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def trained() -> dict:
    """What a training run saves."""
    ddp_model = DDP(nn.Linear(2, 1))
    ddp_model(torch.ones(1, 2)).backward()
    return ddp_model.state_dict()


# one rank suffices to see it, and needs no launcher
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
state = trained()
print("saved:", *state)
dist.destroy_process_group()

model = nn.Linear(2, 1)
print("expected:", *model.state_dict())
model.load_state_dict(state)
print("loaded")

# The cure: The state dict of the model inside DDP fits any model of its kind.
#
# -    return ddp_model.state_dict()
# +    return ddp_model.module.state_dict()
