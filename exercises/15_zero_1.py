"""Shard the state of an optimizer over the ranks: ZeRO stage 1.

In data parallel training every rank keeps the same momentum and variance of all
parameters, and takes the same step. Here each rank keeps those of its own shard, steps
that shard, and receives the other shards, already stepped, from the other ranks. Each
rank still has all parameters and all gradients::

    optimizer = ShardedOptimizer(model.parameters(), torch.optim.AdamW)
    loss_of(model(inputs)).backward()    # of this rank's part of the batch
    optimizer.step()                     # the step for the whole batch

All trained parameters, side by side, form one flat tensor, padded with zeros so that it
splits into N equal shards for N ranks. Gradients differ from rank to rank; the step
uses their mean. A parameter whose ``grad`` is ``None`` has gradient zero. ``step``
leaves every ``grad`` unchanged.

    workshop check 15_zero_1

The page is docs/lessons/15_sharded_data_parallel/1_keeps.rst.
"""

from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import nn

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class ShardedOptimizer:
    """Steps ``parameters``, equal on all ranks; each rank has 1 / N of the state."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], make_optimizer: MakeOptimizer
    ):
        self.parameters = [p for p in parameters if p.requires_grad]
        total = sum(parameter.numel() for parameter in self.parameters)
        self.numel = -(-total // dist.get_world_size())  # of one shard, rounded up
        whole = self.flatten([parameter.detach() for parameter in self.parameters])
        # TODO 1 of 3: make self.shard this rank's shard of `whole`, a new
        # nn.Parameter of self.numel numbers.
        raise NotImplementedError("TODO 1 of 3")
        self.optimizer = make_optimizer([self.shard])

    def flatten(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        """Side by side, and zeros at the end: -> [N * self.numel], a copy."""
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        padding = dist.get_world_size() * self.numel - len(flat)
        return nn.functional.pad(flat, (0, padding))

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step for the mean of all ranks' gradients; all ranks call this."""
        gradients = [
            torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters
        ]
        whole = self.flatten(gradients)
        # TODO 2 of 3: make self.shard.grad this rank's shard of the mean over the
        # ranks. No rank needs the others' shards of it.
        raise NotImplementedError("TODO 2 of 3")
        self.optimizer.step()
        # TODO 3 of 3: gather the stepped shards of all ranks, and copy into each
        # parameter the numbers that belong to it.
        raise NotImplementedError("TODO 3 of 3")
