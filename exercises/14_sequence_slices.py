"""Slice the sequence between the cut layers of a block.

Between the layers that are cut, each of N ranks has a slice of the positions,
[B, T/N, H]. Before those layers, an all-gather puts the slices together. After them, a
reduce-scatter adds up the ranks' shares and leaves each rank the sum of its own slice::

    y = block(x)              # [B, T/N, H] -> the same, on every rank
    loss_of(y).backward()     # the losses of the ranks add up to the loss
    sum_gradients(block)      # then each gradient is that of one process

The two communications are there. You decide which of them forward and backward need,
and which gradients must be added up.

    workshop check 14_sequence_slices

The page is docs/lessons/14_tensor_parallel/4_sequence.rst.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn


def gathered(x: Tensor) -> Tensor:
    """All slices one after the other: [B, T/N, H] -> [B, T, H]. Nothing to do here."""
    slices = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(slices, x.contiguous())  # every rank
    return torch.cat(slices, dim=1)


def summed_slice(x: Tensor) -> Tensor:
    """This rank's slice of the sum over ranks: [B, T, H] -> [B, T/N, H]."""
    slices = [part.contiguous() for part in x.chunk(dist.get_world_size(), dim=1)]
    own = torch.empty_like(slices[0])
    dist.reduce_scatter(own, slices)  # every rank
    return own


class GatherSlices(torch.autograd.Function):
    """All slices, on every rank: [B, T/N, H] -> [B, T, H]."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return gathered(x)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        # TODO 1 of 3: gradient is [B, T, H], the gradient of *all* slices, but only
        # from what this rank computed with them. The other ranks used all slices, too.
        # Return the gradient of this rank's own slice. Leave ``gradient`` as it is: it
        # belongs to autograd.
        raise NotImplementedError("TODO 1 of 3")


class SumToSlices(torch.autograd.Function):
    """This rank's slice of the sum of all shares: [B, T, H] -> [B, T/N, H]."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return summed_slice(x)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        # TODO 2 of 3: gradient is [B, T/N, H], that of this rank's slice of the sum.
        # Return the gradient of this rank's share, [B, T, H].
        raise NotImplementedError("TODO 2 of 3")


class Block(nn.Module):
    """A norm and an MLP whose hidden width is cut, added to the input.

    Every rank has the whole norm and the whole bias of ``row``. It has its own part of
    ``column``, with its bias, and of the weight of ``row``.
    """

    def __init__(self, norm: nn.LayerNorm, column: nn.Linear, row: nn.Linear):
        super().__init__()
        self.norm, self.column, self.row = norm, column, row

    def forward(self, x: Tensor) -> Tensor:
        """[B, T/N, H] -> the same."""
        whole = GatherSlices.apply(self.norm(x))
        hidden = F.gelu(self.column(whole))
        share = F.linear(hidden, self.row.weight)
        return x + SumToSlices.apply(share) + self.row.bias


def sum_gradients(block: Block) -> None:
    """Make each gradient of ``block`` that of one process, after ``backward()``.

    If a rank used a parameter on its own slice alone, it has one part of that gradient.
    The sum over all ranks is the whole gradient. Leave the other gradients as they are:
    they're already right.
    """
    # TODO 3 of 3: which of the six parameters need it? Add up their ``.grad``.
    raise NotImplementedError("TODO 3 of 3")
