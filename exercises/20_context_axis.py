"""A context axis for the capstone: cut the sequences over ranks, and train the same.

The N ranks form a grid of data x context. With four ranks and two context ranks, ranks
0 and 1 share their sequences, and ranks 2 and 3 share others. All but attention treats
every position of a sequence alone, so a rank gives the model its part only::

    scores = model(tokens, positions, attend)  # [B, t], [t] -> [B, t, bytes]

Here t = T / c: a rank has t of a sequence's T tokens, on c context ranks. ``positions``
are the places of these tokens in the whole sequence. In each block the model calls
``attend(query, key, value)`` with three tensors [B, a, t, h], for a heads of width h,
and expects one of that shape back.

The loss is the mean over all targets that count, of all ranks. Padding doesn't count:
its target is ``PADDING``, and some sequences have much of it.

    workshop check 20_context_axis

The page is docs/lessons/20_capstone/5_second_task.rst.
"""

from functools import partial

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

PADDING = -100


class Gather(torch.autograd.Function):
    """Join the parts of a group's ranks along dim 2: [B, a, t, h] -> [B, a, c t, h].

    Every rank of the group calls it, forward and backward.
    """

    @staticmethod
    def forward(ctx, own, group):
        ctx.group = group
        own = own.contiguous()
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, own, group=group)
        return torch.cat(parts, 2)

    @staticmethod
    def backward(ctx, gradient):
        # TODO 1 of 3: every rank of the group has such a gradient, from its own
        # queries. Return what is due to the part of this rank, and None for the group.
        raise NotImplementedError("TODO 1 of 3")


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    positions: torch.Tensor,
    context: dist.ProcessGroup,
) -> torch.Tensor:
    """Causal attention of this rank's queries to the keys of all ranks of ``context``.

    Args:
        query, key, value: [B, a, t, h] of this rank's tokens.
        positions: [t] their places in the sequence, in any order, different on each
            rank.

    Returns:
        [B, a, t, h]. Its gradients reach the keys and values of all ranks.

    A token sees itself and those before it, as
    ``F.scaled_dot_product_attention(..., is_causal=True)`` has it for a whole sequence.
    """
    # TODO 2 of 3: gather what is needed, and make the mask from positions.
    raise NotImplementedError("TODO 2 of 3")


def own_positions(tokens: int, context: dist.ProcessGroup) -> torch.Tensor:
    """[T/c] the positions that this rank has, of a sequence of ``tokens``."""
    parts = torch.arange(tokens).chunk(dist.get_world_size(context))
    return parts[dist.get_rank(context)]


def step_gradients(
    model: nn.Module,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    context: dist.ProcessGroup,
) -> torch.Tensor:
    """The loss of all ranks' sequences; each parameter's ``grad`` is its gradient.

    Args:
        model: the same on all ranks; no parameter has a ``grad`` yet.
        inputs, targets: [B, T] of the sequences that the ranks of ``context`` share.
            c divides T. Other data ranks have other sequences.

    Returns:
        the loss, a tensor with one number. Loss and gradients are the same on all
        ranks.

    The model must get no more than this rank's T / c tokens of each sequence.
    """
    # TODO 3 of 3: cut, compute, count the targets of all ranks, add up. ``partial``
    # turns ``attend`` into the function of three tensors that the model calls.
    raise NotImplementedError("TODO 3 of 3")
