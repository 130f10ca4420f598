"""Where the parallel part of a layer begins and ends: four functions with two faces.

Between two borders every rank computes something of its own. A border that costs
nothing in forward costs a collective in backward, and the other way round; autograd
cannot know that, so each is a function with a backward of its own:

    copy_to_ranks    forward: nothing          backward: all_reduce      (f of Megatron)
    sum_over_ranks   forward: all_reduce       backward: nothing         (g of Megatron)
    gather_slices    forward: all_gather       backward: reduce_scatter
    sum_to_slices    forward: reduce_scatter   backward: all_gather

f and g: Shoeybi et al., 2019, "Megatron-LM", section 3. The other two take their place
where the ranks hold slices of the context in between: Korthikanti et al., 2022,
"Reducing Activation Recomputation in Large Transformer Models", section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from common.gpt_training import check_divides

SLICED = 1  # the tensor dim of [B, T, width] that slices divide


# [start f and g]
def summed(x: torch.Tensor) -> torch.Tensor:
    """The sum of all ranks' ``x`` in new memory: whoever else holds ``x`` keeps it."""
    total = x.clone(memory_format=torch.contiguous_format)
    # Every rank. [shape] -> [shape], 2(t-1)/t x its bytes for t ranks.
    dist.all_reduce(total)
    return total


class _CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)  # every rank has it already

    @staticmethod
    def backward(ctx, gradient):
        return summed(gradient)  # each rank knows only what its own part did with x


class _SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return summed(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient  # a sum hands the same gradient to each of its parts


# [end f and g]
# [start slices]
def gathered(x: torch.Tensor) -> torch.Tensor:
    """[B, T/t, width] on each of t ranks -> [B, T, width] on all."""
    slices = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    # Every rank. (t-1) x the bytes of a slice, half of what an all_reduce sends.
    dist.all_gather(slices, x.contiguous())
    return torch.cat(slices, dim=SLICED)


def summed_slice(x: torch.Tensor) -> torch.Tensor:
    """[B, T, width] on each of t ranks -> the sum's own slice [B, T/t, width]."""
    slices = [part.contiguous() for part in x.chunk(dist.get_world_size(), SLICED)]
    own = torch.empty_like(slices[0])
    # Every rank. (t-1)/t x the bytes of x, the other half of an all_reduce.
    dist.reduce_scatter(own, slices)
    return own


class _GatherSlices(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return gathered(x)

    @staticmethod
    def backward(ctx, gradient):
        return summed_slice(gradient)


class _SumToSlices(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return summed_slice(x)

    @staticmethod
    def backward(ctx, gradient):
        return gathered(gradient)


# [end slices]
def take_slice(x: torch.Tensor) -> torch.Tensor:
    """The own slice of the context, [B, T, width] -> [B, T/t, width]; costs nothing.

    Raises:
        BadInput: the ranks do not divide the context.
    """
    check_divides(x.shape[SLICED], dist.get_world_size(), "--context", "ranks")
    own = x.chunk(dist.get_world_size(), SLICED)[dist.get_rank()]
    return own.clone(memory_format=torch.contiguous_format)  # lets go of the rest


# [start borders]
@dataclass(frozen=True)
class Borders:
    """What happens to the residual stream [B, T, width] on its way through a model."""

    start: Callable[[torch.Tensor], torch.Tensor]  # after the embedding
    enter: Callable[[torch.Tensor], torch.Tensor]  # before a layer in parallel
    leave: Callable[[torch.Tensor], torch.Tensor]  # after it
    sliced: bool  # whether a rank has only its slice of the context in between


WHOLE = Borders(lambda x: x, _CopyToRanks.apply, _SumOverRanks.apply, sliced=False)
SLICES = Borders(take_slice, _GatherSlices.apply, _SumToSlices.apply, sliced=True)
# [end borders]
