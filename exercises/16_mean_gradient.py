"""Average gradients on a grid: over which ranks, and by sum or by mean?

A block is split over a grid of ranks, one *tensor group* per row, one *data group* per
column. The ranks of a tensor group see the same batch, and each holds some columns of
the first layer and rows of the second: these parameters are *cut*. The norm's weights
and the last bias are *whole*: all ranks hold them. After ``backward()`` each rank has
the gradients of the mean loss over its own batch. Turn them into those of the mean loss
over all batches, which are equally large.

Must a tensor group add up the gradients of whole parameters? Without sequence
parallelism, each of its ranks has computed them from all positions. With it, each has
normalized only its own share of the positions.

Clipping needs the second function: the norm of all gradients, as one process would
compute it, from the parts on the ranks.

    workshop check 16_mean_gradient

The page is docs/lessons/16_two_dimensions.rst.
"""

import torch
import torch.distributed as dist
from torch import nn


def average_gradients(
    cut: list[nn.Parameter],
    whole: list[nn.Parameter],
    data_group: dist.ProcessGroup,
    tensor_group: dist.ProcessGroup,
    sequence_parallel: bool,
) -> None:
    """Turn every ``.grad`` into that of the mean loss over the data ranks' batches."""
    # TODO 1 of 2: take the mean over the data group, and where ranks of a tensor group
    # have seen different positions, the sum over the tensor group.
    raise NotImplementedError("TODO 1 of 2")


def gradient_norm(
    cut: list[nn.Parameter],
    whole: list[nn.Parameter],
    tensor_group: dist.ProcessGroup,
) -> torch.Tensor:
    """[]: the root of the sum of the squares of all gradients, the same on all ranks.

    The gradients are averaged already.
    """
    # TODO 2 of 2: count each number of the unsplit model once.
    raise NotImplementedError("TODO 2 of 2")
