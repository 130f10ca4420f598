"""Combine columns and rows: an MLP with one all_reduce in each direction.

An MLP is ``down(gelu(up(x)))``. If you cut ``up`` by columns, each rank has some of the
hidden numbers, and gelu works on each number separately. If you cut ``down`` by rows, a
rank needs exactly the hidden numbers that it has. So nothing is sent in the middle::

    mlp = ParallelMLP(up, down)      # two nn.Linear, the same on all ranks
    y = mlp(x)                       # [..., in] -> [..., out], the same on all ranks

    workshop check 14_parallel_mlp

The two borders are given: f and g of the page docs/lessons/14_tensor_parallel.rst.
Divide the hidden numbers as torch.chunk does.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


def summed(x: torch.Tensor) -> torch.Tensor:
    """The sum over the ranks, in new memory."""
    total = x.clone(memory_format=torch.contiguous_format)
    # Every rank: [shape] -> [shape], in place.
    dist.all_reduce(total)
    return total


class CopyToRanks(torch.autograd.Function):
    """f: nothing in forward, all_reduce in backward."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return summed(gradient)


class SumOverRanks(torch.autograd.Function):
    """g: all_reduce in forward, nothing in backward."""

    @staticmethod
    def forward(ctx, share):
        return summed(share)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def own_part(whole: torch.Tensor, dim: int) -> nn.Parameter:
    """This rank's part of a parameter, cut along ``dim``."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    return nn.Parameter(whole.detach().chunk(world_size, dim)[rank].clone())


class ParallelMLP(nn.Module):
    """This rank's part of ``down(gelu(up(x)))``."""

    def __init__(self, up: nn.Linear, down: nn.Linear):
        super().__init__()
        # TODO 1 of 2: self.up_weight, self.up_bias and self.down_weight are parts, from
        # own_part(); self.down_bias is whole, as a new parameter.
        # [start answer 1]
        self.up_weight = own_part(up.weight, dim=0)  # [own hidden, in]
        self.up_bias = own_part(up.bias, dim=0)  # [own hidden]
        self.down_weight = own_part(down.weight, dim=1)  # [out, own hidden]
        self.down_bias = nn.Parameter(down.bias.detach().clone())  # [out]
        # [end answer 1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # TODO 2 of 2: the output of the whole MLP, with one all_reduce in forward and
        # one in backward: CopyToRanks.apply() and SumOverRanks.apply(), once each.
        # [start answer 2]
        entered = CopyToRanks.apply(x)
        hidden = F.gelu(F.linear(entered, self.up_weight, self.up_bias))
        share = F.linear(hidden, self.down_weight)
        return SumOverRanks.apply(share) + self.down_bias
        # [end answer 2]
