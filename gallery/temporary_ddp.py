"""A DDP object that is made for one forward pass averages nothing."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def gradient() -> float:
    """The gradient of this rank, whose input is its number plus 1."""
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    inputs = torch.full((1, 1), dist.get_rank() + 1.0)
    loss = DDP(model)(inputs).sum()
    loss.backward()
    return model.weight.grad.item()


dist.init_process_group("gloo")
gradients = [0.0] * dist.get_world_size()
dist.all_gather_object(gradients, gradient())  # every rank
if dist.get_rank() == 0:
    mean = sum(range(1, len(gradients) + 1)) / len(gradients)
    for number, value in enumerate(gradients):
        print(f"rank {number}: gradient {value:.1f}, the mean is {mean:.1f}")
    found = "averaged" if set(gradients) == {mean} else "NOT averaged"
    print(found)
dist.destroy_process_group()

# The cure: A DDP object that lives until backward averages the gradients.
#
# -    loss = DDP(model)(inputs).sum()
# +    ddp_model = DDP(model)
# +    loss = ddp_model(inputs).sum()
