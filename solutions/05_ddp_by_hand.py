"""Write DDP yourself: broadcast, average while backward runs, wait.

When you wrap a model in DDP, all ranks get the state of rank 0. During ``backward()``,
autograd calls a hook for each parameter as soon as its gradient is complete. The hook
starts to average that gradient and returns at once, so backward continues while the
bytes are sent. ``finish()`` waits for all of them before the optimizer's step::

    ddp_model = HandMadeDDP(model)
    loss_of(ddp_model(inputs)).backward()
    ddp_model.finish()
    optimizer.step()

    workshop check 05_ddp_by_hand

The page is docs/lessons/05_ddp_spawn/3_gradients.rst.
"""

from itertools import chain

import torch
import torch.distributed as dist
from torch import nn


class HandMadeDDP(nn.Module):
    """Trains one ``module`` on all ranks: equal weights, averaged gradients."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module
        self.works: list[dist.Work] = []  # averages that are not complete yet
        # each rank may have built the module from different random numbers
        # TODO 1 of 3: give every rank the parameters and all buffers of rank 0, also
        # those that state_dict leaves out.
        # [start answer 1]
        for tensor in chain(module.parameters(), module.buffers()):
            # Every rank; in place, the tensor's size in bytes.
            dist.broadcast(tensor.detach(), src=0)
        # [end answer 1]
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self.start_average)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.module(*inputs)

    def start_average(self, parameter: nn.Parameter) -> None:
        """Start to average ``parameter.grad``, which backward has just completed."""
        # TODO 2 of 3: start an all_reduce of the gradient without waiting for it, and
        # keep what it returns. In the end .grad must hold the mean over the ranks.
        # [start answer 2]
        parameter.grad /= dist.get_world_size()
        # Every rank, in one order: that of backward. [shape] -> [shape], in place.
        self.works.append(dist.all_reduce(parameter.grad, async_op=True))
        # [end answer 2]

    def finish(self) -> None:
        """Return when every ``.grad`` is the mean; called before each step."""
        # TODO 3 of 3: wait for everything that was started since the last call, and
        # leave self.works empty.
        # [start answer 3]
        for work in self.works:
            work.wait()
        self.works.clear()
        # [end answer 3]
