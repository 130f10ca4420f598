"""Checks of exercises/16_reshard.py."""

import contextlib
import itertools
import numbers

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()
SHAPES = [(7, 5), (1, 11), (8, 3), (2, 2)]
SAVED_ON = [(2, 2), (1, 1), (3, 1), (1, 4), (2, 3)]
LOADED_ON = {3: [(1, 3), (3, 1)], 4: [(2, 2), (4, 1), (1, 4)]}


def bounds(length, parts):
    """(start, stop) of each part, by torch."""
    edges = [0]
    for part in torch.arange(length).tensor_split(parts):
        edges.append(edges[-1] + len(part))
    return list(itertools.pairwise(edges))


def boxes(shape, grid):
    rows, columns = (bounds(n, parts) for n, parts in zip(shape, grid, strict=True))
    return [(row, column) for row in rows for column in columns]


def cut(matrix, box):
    return matrix[tuple(slice(start, stop) for start, stop in box)]


def is_box(found):
    try:
        return [len(part) for part in found] == [2, 2]
    except TypeError:
        return False


def are_slices(slices, most):
    return (
        isinstance(slices, tuple)
        and len(slices) <= most
        and all(isinstance(part, slice) for part in slices)
    )


def inside(part, size):
    """Whether a slice keeps to 0 ... size; it may leave out its start or its stop."""
    start = 0 if part.start is None else part.start
    stop = size if part.stop is None else part.stop
    return 0 <= start <= stop <= size


@contextlib.contextmanager
def unwritten_is_nan():
    """New memory holds NaN in here, and no numbers of a shard that was there before."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.ranks(1)
def test_parts_are_those_of_tensor_split(exercise, seed):
    """part_bounds cuts as torch.tensor_split does, and into more parts, too."""
    for length in (12, 7, 10, 2, 1, 0, 23):
        for parts in (1, 3, 4, 5, 8):
            for index, expected in enumerate(bounds(length, parts)):
                found = exercise.part_bounds(length, parts, index)
                expect.that(
                    found is not None and tuple(found) == expected,
                    f"part {index} of {length}, cut into {parts}, is {found}, expected "
                    f"{expected} as (start, stop)",
                )
                whole = all(isinstance(bound, numbers.Integral) for bound in found)
                expect.that(whole, f"bounds are whole numbers, these are {found}")


@pytest.mark.ranks(1)
def test_overlap(exercise, seed):
    """The part that two boxes share, or None."""
    for shape in SHAPES:
        everywhere = torch.arange(shape[0] * shape[1]).view(shape)
        for mine in boxes(shape, (2, 3)):
            for theirs in boxes(shape, (3, 2)):
                both = set(cut(everywhere, mine).flatten().tolist())
                both &= set(cut(everywhere, theirs).flatten().tolist())
                found = exercise.overlap(mine, theirs)
                what = f"the overlap of {mine} and {theirs}"
                if not both:
                    expect.that(found is None, f"{what} is {found}, expected None")
                    continue
                expect.that(found is not None, f"{what} is None, but they share some")
                expect.that(is_box(found), f"{what} is {found}, which is no box")
                shared = cut(everywhere, found).flatten().tolist()
                expect.equal(sorted(shared), sorted(both), f"what is in {what}")


@pytest.mark.ranks(3, 4)
def test_each_rank_gets_its_shard(exercise, rank, world_size, seed, shared_dir):
    """Saved on one grid and loaded on another: each rank's shard of the same matrix."""
    generator = torch.Generator().manual_seed(seed)
    for shape in SHAPES:
        matrix = torch.randn(shape, generator=generator, dtype=torch.float64)
        for saved_on in SAVED_ON:
            for loaded_on in LOADED_ON[world_size]:
                load_and_compare(exercise, matrix, saved_on, loaded_on, rank)


def load_and_compare(exercise, matrix, saved_on, loaded_on, rank):
    # every second rank has saved, and the last one comes first
    saved = {2 * k: box for k, box in enumerate(boxes(matrix.shape, saved_on))}
    saved = dict(reversed(saved.items()))
    mine = boxes(matrix.shape, loaded_on)[rank]
    numbers_read = []

    def read(number, slices):
        what = f"read({number}, {slices})"
        expect.that(number in saved, f"{what}: the ranks that saved are {list(saved)}")
        shard = cut(matrix, saved[number])
        expect.that(
            are_slices(slices, shard.dim()),
            f"{what} must be given a tuple of slices, one for each tensor dim",
        )
        expect.that(
            all(map(inside, slices, shard.shape)),
            f"{what}: its shard has the shape {list(shard.shape)}, and slices count "
            "from its own beginning",
        )
        numbers_read.append(shard[slices].numel())
        return shard[slices].clone()

    how = f"of {list(matrix.shape)}, saved on {saved_on}, loaded on {loaded_on}"
    given = dict(saved)
    with unwritten_is_nan():
        shard = exercise.load_shard(mine, given, read)
    expect.equal(shard, cut(matrix, mine).clone(), f"the shard {how}")
    expect.equal(given, saved, "saved, afterwards")
    needed = cut(matrix, mine).numel()
    expect.right_way(
        sum(numbers_read) == needed,
        f"{sum(numbers_read)} numbers were read for a shard of {needed} {how}: "
        "read only the part of each file that is needed",
    )
    expect.right_way(
        0 not in numbers_read, f"your code read a file that it doesn't need, {how}"
    )


@pytest.mark.ranks(4)
def test_files_of_other_ranks(exercise, rank, world_size, seed, shared_dir):
    """With real files: saved on 2 x 2 by these ranks, loaded on 1 x 4."""
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(7, 6, generator=generator, dtype=torch.float64)
    saved = {r: exercise.box_of((7, 6), (2, 2), r) for r in range(4)}
    torch.save(cut(matrix, saved[rank]).clone(), shared_dir / f"shard_{rank}.pt")
    dist.barrier()

    def read(number, slices):
        path = shared_dir / f"shard_{number}.pt"
        return torch.load(path, mmap=True, weights_only=True)[slices].clone()

    mine = exercise.box_of((7, 6), (1, 4), rank)
    with unwritten_is_nan():
        shard = exercise.load_shard(mine, saved, read)
    expect.equal(shard, cut(matrix, mine).clone(), "the shard read from files")
