"""Cross a stage boundary: activations to the next rank, gradients back.

A network is cut into stages, one on each rank. Autograd knows nothing of other ranks:
the graph of a rank ends where its input comes from a neighbour. So you carry on by
hand what autograd would have done::

    x, y = forward(stage, inputs, shape)      # on every rank, rank 0 first
    loss = y.square().mean() if rank == world_size - 1 else None
    backward(x, y, loss)                      # on every rank, the last rank first

Several micro-batches may be under way: ``forward`` is then called again before
``backward``, so keep nothing between the calls but what ``forward`` returns. After
``backward`` every weight must have the gradient that one process would have given it.

    workshop check 13_stage_boundary

The page is docs/lessons/13_pipeline_parallel.rst.
"""

import torch
import torch.distributed as dist
from torch import Tensor, nn


def forward(
    stage: nn.Module, inputs: Tensor | None, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Take one micro-batch through this rank's stage: (its input, its output).

    Rank 0 is given ``inputs``, the others None. On them the input has the shape
    ``shape`` and comes from the rank before, in float64.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    # TODO 1 of 2: have the input, from the rank before if there is one, in such a way
    # that backward will leave its gradient in it; compute; send the output on.
    raise NotImplementedError("TODO 1 of 2")
    return x, y


def backward(x: Tensor, y: Tensor, loss: Tensor | None) -> None:
    """Add the gradients of one micro-batch to ``.grad`` of this rank's weights.

    ``x`` and ``y`` are what :func:`forward` returned. The last rank is given the loss
    of this micro-batch, the others None.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    # TODO 2 of 2: the last rank begins at the loss, each other one at its output, with
    # the gradient that the rank after it sends; then pass on what the rank before
    # needs.
    raise NotImplementedError("TODO 2 of 2")
