"""Load a matrix on a different grid of ranks from the one that saved it.

The ranks of a grid, say 2 x 2, saved a matrix: the grid's first axis cut the rows, its
second axis the columns, and each rank wrote its shard. Now other ranks load it, say on
1 x 3. A rank's shard then overlaps several of the saved ones, and needs only parts of
them.

A *box* says which part of the matrix a shard is: ``((2, 4), (0, 3))`` means rows 2 and
3 of columns 0, 1 and 2. The sizes need not be divisible. As with
``torch.tensor_split``, the first parts are one longer, and a part may be empty.

    workshop check 16_reshard

The page is docs/lessons/16_two_dimensions/4_checkpoint.rst.
"""

from collections.abc import Callable

import torch

Box = tuple[tuple[int, int], ...]  # (start, stop) for each tensor dim


def part_bounds(length: int, parts: int, index: int) -> tuple[int, int]:
    """(start, stop) of part ``index`` if ``length`` is cut into that many parts."""
    # TODO 1 of 3: the first length % parts of the parts are one longer.
    raise NotImplementedError("TODO 1 of 3")


def box_of(shape: tuple[int, int], grid: tuple[int, int], rank: int) -> Box:
    """Which part of a matrix of this shape a rank of the grid holds."""
    coordinates = divmod(rank, grid[1])
    cuts = zip(shape, grid, coordinates, strict=True)
    return tuple(part_bounds(*cut) for cut in cuts)


def overlap(own: Box, theirs: Box) -> Box | None:
    """The box of what both contain; None if that is nothing."""
    # TODO 2 of 3: along each tensor dim, where does the common range start and stop?
    raise NotImplementedError("TODO 2 of 3")


def load_shard(
    own: Box,
    saved: dict[int, Box],
    read: Callable[[int, tuple[slice, ...]], torch.Tensor],
) -> torch.Tensor:
    """This rank's shard, float64, assembled from the parts of the saved ones.

    Args:
        own: which part of the matrix this rank holds.
        saved: rank that saved -> which part of the matrix its file holds. Not every
            rank number is a key, and a box may be empty. Leave it unchanged.
        read: ``read(rank, slices)`` reads ``shard[slices]`` from the file of a rank
            that saved, and only that. The slices count from the beginning of *its*
            shard. Read each number once, and nothing that you don't need.
    """
    shard = torch.empty([stop - start for start, stop in own], dtype=torch.float64)
    # TODO 3 of 3: for each saved box that overlaps yours, read the overlap and copy it
    # to its place in your own shard.
    raise NotImplementedError("TODO 3 of 3")
    return shard
