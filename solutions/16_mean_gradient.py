"""Average gradients on a grid: over which ranks, and by sum or by mean?

A block is split over a grid of ranks, one *tensor group* per row, one *data group* per
column. The ranks of a tensor group see the same batch, and each holds some columns of
the first layer and rows of the second: these parameters are *cut*. The norm's weights
and the last bias are *whole*: all ranks hold them. After ``backward()`` each rank has
gradients of the mean loss over its own batch. Wanted are those of the mean loss over
all batches, which are equally large.

Whether a tensor group must add up the gradients of whole parameters depends. Without
sequence parallelism each of its ranks has computed them from all positions. With it,
each has normalised only its own share of the positions.

The second function is the one that clipping needs: the norm of all gradients, as one
process would compute it, from what is scattered over the ranks.

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
    """Make every ``.grad`` that of the mean loss over the batches of all data ranks."""
    # TODO 1 of 2: the mean over the data group, and where ranks of a tensor group have
    # seen different positions, the sum over the tensor group.
    # [start answer 1]
    for parameter in [*cut, *whole]:
        # Every rank of the data group: [shape] -> [shape], the sum in place.
        dist.all_reduce(parameter.grad, group=data_group)
        parameter.grad /= dist.get_world_size(data_group)
    if sequence_parallel:
        for parameter in whole:
            # Every rank of the tensor group: each brings what its positions say.
            dist.all_reduce(parameter.grad, group=tensor_group)
    # [end answer 1]


def gradient_norm(
    cut: list[nn.Parameter],
    whole: list[nn.Parameter],
    tensor_group: dist.ProcessGroup,
) -> torch.Tensor:
    """[]: the root of the sum of the squares of all gradients, the same on all ranks.

    The gradients are averaged already.
    """
    # TODO 2 of 2: each number of the unsplit model must count once.
    # [start answer 2]
    squares = sum(parameter.grad.square().sum() for parameter in cut)
    # Every rank of the tensor group: [] -> [], each brings its own columns and rows.
    dist.all_reduce(squares, group=tensor_group)
    squares += sum(parameter.grad.square().sum() for parameter in whole)
    return squares.sqrt()
    # [end answer 2]
