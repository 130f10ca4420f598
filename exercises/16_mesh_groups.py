"""Find the rows and columns of a grid of ranks, and make their process groups.

``init_device_mesh("cpu", (2, 3))`` lays six ranks out like this, with axis 0
downwards and axis 1 to the right::

    0 1 2        rank 4 is at (1, 1); its group along axis 0 is [1, 4],
    3 4 5        along axis 1 it is [3, 4, 5]

The ranks are laid out the way numbers are written: the last axis varies fastest. A
shape may have any number of axes. Do here what the mesh does, without using it. If a
program confuses two axes, it sums the wrong gradients, and no error tells you.

    workshop check 16_mesh_groups

The page is docs/lessons/16_two_dimensions/1_grid.rst.
"""

import math

import torch.distributed as dist


def coordinates(rank: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A rank's place along each axis, from 0."""
    # TODO 1 of 3: work out the places, starting with the last axis.
    raise NotImplementedError("TODO 1 of 3")


def group_ranks(rank: int, shape: tuple[int, ...], axis: int) -> list[int]:
    """The ranks that share all places with ``rank`` except the one along ``axis``.

    They are in the order of these places, and include ``rank``.
    """
    # TODO 2 of 3: how far apart are two neighbors along the axis, and which rank
    # has place 0 there? math.prod(()) is 1.
    raise NotImplementedError("TODO 2 of 3")


def make_groups(shape: tuple[int, ...]) -> list[dist.ProcessGroup]:
    """This rank's process group along each axis; every rank calls this."""
    groups = []
    for axis in range(len(shape)):
        # TODO 3 of 3: create the groups of this axis with dist.new_group(ranks), and
        # append this rank's. Every rank must call new_group for every group, even for
        # those it isn't in.
        raise NotImplementedError("TODO 3 of 3")
    return groups
