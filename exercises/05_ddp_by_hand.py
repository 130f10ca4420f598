"""Write DDP yourself: broadcast, average while backward runs, wait.

What ``DistributedDataParallel`` does to your gradients fits on this page. When it is
made, all ranks get the state of rank 0. During ``backward()`` autograd calls a hook
for each parameter as soon as its gradient is complete; the hook starts to average that
gradient and returns at once, so that backward goes on while the bytes travel. Before
``optimizer.step()`` somebody has to wait for them, which is ``finish()`` here::

    ddp_model = HandMadeDDP(model)
    loss_of(ddp_model(inputs)).backward()
    ddp_model.finish()
    optimizer.step()

    workshop check 05_ddp_by_hand

The page is docs/lessons/05_ddp_spawn.rst.
"""

from itertools import chain

import torch
import torch.distributed as dist
from torch import nn


class HandMadeDDP(nn.Module):
    """Trains ``module`` on all ranks as one: equal weights, averaged gradients."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module
        self.works: list[dist.Work] = []  # averages that are under way
        # each rank may have built the module from other random numbers
        # TODO 1 of 3: give every rank the parameters and the buffers of rank 0.
        raise NotImplementedError("TODO 1 of 3")
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self.start_average)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.module(*inputs)

    def start_average(self, parameter: nn.Parameter) -> None:
        """Begin to average ``parameter.grad``, which backward has just completed."""
        # TODO 2 of 3: start an all_reduce of the gradient that does not wait, and
        # keep what it returns. In the end .grad must hold the mean over the ranks.
        raise NotImplementedError("TODO 2 of 3")

    def finish(self) -> None:
        """Return when every ``.grad`` is the mean; called before each step."""
        # TODO 3 of 3: wait for everything that was started since the last call.
        raise NotImplementedError("TODO 3 of 3")
