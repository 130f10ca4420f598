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
    # [start answer 1]
    coordinate = []
    for size in reversed(shape):
        rank, place = divmod(rank, size)
        coordinate.append(place)
    return tuple(reversed(coordinate))
    # [end answer 1]


def group_ranks(rank: int, shape: tuple[int, ...], axis: int) -> list[int]:
    """The ranks that share all places with ``rank`` except the one along ``axis``.

    They are in the order of these places, and include ``rank``.
    """
    # TODO 2 of 3: how far apart are two neighbors along the axis, and which rank
    # has place 0 there? math.prod(()) is 1.
    # [start answer 2]
    apart = math.prod(shape[axis + 1 :])
    first = rank - coordinates(rank, shape)[axis] * apart
    return [first + place * apart for place in range(shape[axis])]
    # [end answer 2]


def make_groups(shape: tuple[int, ...]) -> list[dist.ProcessGroup]:
    """This rank's process group along each axis; every rank calls this."""
    groups = []
    for axis in range(len(shape)):
        # TODO 3 of 3: create the groups of this axis with dist.new_group(ranks), and
        # append this rank's. Every rank must call new_group for every group, even for
        # those it isn't in.
        # [start answer 3]
        ranks = range(dist.get_world_size())
        rows = sorted({tuple(group_ranks(rank, shape, axis)) for rank in ranks})
        for row in rows:
            # Every rank, for every row, in the same order: it is a collective.
            group = dist.new_group(list(row))
            if dist.get_rank() in row:
                groups.append(group)
        # [end answer 3]
    return groups
