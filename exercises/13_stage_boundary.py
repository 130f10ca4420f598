"""Cross a stage boundary: activations to the next rank, gradients back.

A network is cut into stages, one on each rank. Autograd tracks one process only, so a
rank's graph ends where its input comes from a neighbor. You do by hand what autograd
would have done::

    x, y = forward(stage, inputs, shape)      # on every rank, rank 0 first
    loss = y.square().mean() if rank == world_size - 1 else None
    backward(x, y, loss)                      # on every rank, the last rank first

Several micro-batches may be under way: ``forward`` is then called again before
``backward``, and ``backward`` may be called in any order, the same on all ranks. So
keep no state except what ``forward`` returns, and add to existing gradients. After
``backward`` every weight must have the gradient that one process would have given it.

    workshop check 13_stage_boundary

The page is docs/lessons/13_pipeline_parallel/2_order.rst.
"""

import torch
import torch.distributed as dist
from torch import Tensor, nn


def forward(
    stage: nn.Module, inputs: Tensor | None, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Take one micro-batch through this rank's stage: (its input, its output).

    Rank 0 is given ``inputs``, the others None. They receive their input from the
    previous rank, in float64 and with the shape ``shape``.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    # TODO 1 of 2: get the input, from the previous rank if there is one, such that
    # backward will leave a gradient in it; compute; send the output to the next rank.
    raise NotImplementedError("TODO 1 of 2")
    return x, y


def backward(x: Tensor, y: Tensor, loss: Tensor | None) -> None:
    """Add the gradients of one micro-batch to ``.grad`` of this rank's weights.

    ``x`` and ``y`` are what :func:`forward` returned. The last rank is given the loss
    of this micro-batch, the others None.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    # TODO 2 of 2: the last rank starts at the loss. Every other rank starts at its
    # output, with the gradient that the next rank sends. Then send the previous rank
    # what it needs.
    raise NotImplementedError("TODO 2 of 2")
