"""Cut a linear layer by its rows, and add its bias once.

Each rank has some of the inputs of ``y = x A + b`` and the rows of A that belong to
them. So it computes a share of *all* outputs, and one all_reduce adds up the shares.
A sum passes its gradient unchanged to each of its terms::

    layer = RowLinear(whole)         # whole: an nn.Linear, the same on all ranks
    y = layer(x)                     # [..., own in] -> [..., out], the same on all

    workshop check 14_row_linear

After the sum all ranks have the same ``y`` and compute the same loss from it. The page
is docs/lessons/14_tensor_parallel/1_columns_and_rows.rst.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class SumOverRanks(torch.autograd.Function):
    """g of Megatron: ``SumOverRanks.apply(share)`` is the sum of all ranks' shares."""

    @staticmethod
    def forward(ctx, share: torch.Tensor) -> torch.Tensor:
        # TODO 1 of 3: return the sum over the ranks; don't change ``share``.
        raise NotImplementedError("TODO 1 of 3")

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
        # TODO 2 of 3: return the gradient of this rank's share. ``gradient`` is the one
        # of the sum, and it's the same on all ranks.
        raise NotImplementedError("TODO 2 of 3")


class RowLinear(nn.Module):
    """This rank's rows of ``whole``: [out, own in]; the bias, [out], on every rank."""

    def __init__(self, whole: nn.Linear):
        super().__init__()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        weight = whole.weight.detach().chunk(world_size, dim=1)[rank]
        self.weight = nn.Parameter(weight.clone())
        self.bias = nn.Parameter(whole.bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # TODO 3 of 3: the output of the whole layer, from the inputs of this rank. All
        # ranks must get the same gradient of the bias, that of the whole layer.
        raise NotImplementedError("TODO 3 of 3")
