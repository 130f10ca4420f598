"""Cut a linear layer by its columns: forward sends nothing, backward does.

Each rank computes some of the outputs of ``y = x A + b`` from all of ``x``. PyTorch
stores A transposed, so a column of A is a row of ``weight``. Divide the outputs as
torch.chunk does, even if the number of ranks doesn't divide them: of 10 outputs, 3
ranks have 4, 4 and 2.

All ranks hold the same ``x``. Its gradient is a sum over all columns, and each rank
knows only its own columns. Autograd doesn't track other ranks. So ``x`` goes through a
function that does nothing in forward and adds up in backward, with one all_reduce::

    layer = ColumnLinear(whole)      # whole: an nn.Linear, the same on all ranks
    y = layer(x)                     # [..., in] -> [..., own out]

    workshop check 14_column_linear

The page is docs/lessons/14_tensor_parallel/1_columns_and_rows.rst.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class CopyToRanks(torch.autograd.Function):
    """f of Megatron: ``CopyToRanks.apply(x)`` is x, its gradient a sum over ranks."""

    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
        # TODO 1 of 2: return the sum of all ranks' gradients. Autograd may still need
        # the tensor that it gave you here, so don't change it.
        # [start answer 1]
        total = gradient.clone(memory_format=torch.contiguous_format)
        # Every rank, in backward: [shape] -> [shape], in place.
        dist.all_reduce(total)
        return total
        # [end answer 1]


class ColumnLinear(nn.Module):
    """This rank's columns of ``whole``, its ``weight`` and its ``bias``."""

    def __init__(self, whole: nn.Linear):
        super().__init__()
        # TODO 2 of 2: make self.weight, [own out, in], and self.bias, [own out], from
        # those of the whole layer, each as a new nn.Parameter.
        # [start answer 2]
        rank, world_size = dist.get_rank(), dist.get_world_size()
        weight = whole.weight.detach().chunk(world_size, dim=0)[rank]
        bias = whole.bias.detach().chunk(world_size, dim=0)[rank]
        self.weight = nn.Parameter(weight.clone())
        self.bias = nn.Parameter(bias.clone())
        # [end answer 2]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(CopyToRanks.apply(x), self.weight, self.bias)
