"""Checks of exercises/16_reshard.py."""

import contextlib
import itertools
import numbers

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect, variants

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


def part_of(length, parts, index, *, longer="first", stop="stop"):
    """(start, stop) of a part; the keywords are what goes wrong."""
    size, rest = divmod(length, parts)
    up = -(-length // parts)
    ranges = {
        "first": (index * size + min(index, rest), size + (index < rest)),
        "last": (
            index * size + max(0, index - (parts - rest)),
            size + (index >= parts - rest),
        ),
        "all in the last": (index * size, size + rest * (index == parts - 1)),
        "all in the first": (
            index * size + rest * (index > 0),
            size + rest * (index == 0),
        ),
        "none": (index * size, size),
        "up": (min(index * up, length), min(up, max(0, length - index * up))),
        "up, and beyond": (index * up, up),
        "longer without a shift": (index * size, size + (index < rest)),
        "shift of one": (
            index * size + (rest > 0 and index > 0),
            size + (index < rest),
        ),
        "nearest": (
            round(index * length / parts),
            round((index + 1) * length / parts) - round(index * length / parts),
        ),
        "share": (
            index * length // parts,
            (index + 1) * length // parts - index * length // parts,
        ),
    }
    start, size = ranges[longer]
    return start, {"stop": start + size, "size": size, "last": start + size - 1}[stop]


MISTAKEN_PARTS = {
    "the last parts were longer, not the first": {"longer": "last"},
    "the last part had all of the rest": {"longer": "all in the last"},
    "the first part had all of the rest": {"longer": "all in the first"},
    "the rest were dropped": {"longer": "none"},
    "each part were rounded up, as by `chunk`": {"longer": "up"},
    "each part were rounded up, beyond the end": {"longer": "up, and beyond"},
    "the start of later parts didn't allow for the longer ones": {
        "longer": "longer without a shift"
    },
    "later parts began one number later, however many were longer": {
        "longer": "shift of one"
    },
    "bounds were rounded to the nearest number": {"longer": "nearest"},
    "bounds were index * length // parts": {"longer": "share"},
    "the size were returned, not the stop": {"stop": "size"},
    "the last number that belongs to it were returned, not the stop": {"stop": "last"},
}


@pytest.mark.ranks(1)
def test_parts_are_those_of_tensor_split(exercise, seed):
    """part_bounds cuts as torch.tensor_split does, and into more parts, too."""
    lengths, every = (12, 7, 10, 2, 1, 0, 23), (1, 3, 4, 5, 8)
    cases = [(n, parts, k) for n in lengths for parts in every for k in range(parts)]

    def asked(*case):
        return tuple(exercise.part_bounds(*case))

    cause = variants.cause_in(asked, cases, part_of, MISTAKEN_PARTS)
    for length in lengths:
        for parts in every:
            for index, expected in enumerate(bounds(length, parts)):
                found = exercise.part_bounds(length, parts, index)
                expect.that(
                    found is not None and tuple(found) == expected,
                    f"part {index} of {length}, cut into {parts}, is {found}, expected "
                    f"{expected} as (start, stop)",
                    cause=cause,
                )
                whole = all(isinstance(bound, numbers.Integral) for bound in found)
                expect.that(whole, f"bounds are whole numbers, these are {found}")


def overlap_of(mine, theirs, *, start=max, stop=min, needed=all, least=1, then=None):
    """What two boxes share, or None; the keywords are what goes wrong."""
    pairs = list(zip(mine, theirs, strict=True))
    common = tuple((start(a, c), stop(b, d)) for (a, b), (c, d) in pairs)
    if not needed(upper - lower >= least for lower, upper in common):
        return None
    if then == "first":
        return tuple(
            (u - a, v - a) for (u, v), (a, _) in zip(common, mine, strict=True)
        )
    if then == "second":
        shifted = zip(common, theirs, strict=True)
        return tuple((u - a, v - a) for (u, v), (a, _) in shifted)
    if then == "sizes":
        return tuple((u, v - u) for u, v in common)
    return common


def always(_):
    return True


def first_of(one, _):
    return one


def second_of(_, other):
    return other


MISTAKEN_OVERLAP = {
    "ranges that only touch overlapped: then they share no number": {"least": 0},
    "it were enough to overlap along one tensor dim": {"needed": any},
    "boxes that share nothing overlapped, too": {"needed": always},
    "it were the smallest box around both": {"start": min, "stop": max},
    "it began where the first of the two begins": {"start": min},
    "it stopped where the last of the two stops": {"stop": max},
    "it were the first box itself": {"start": first_of, "stop": first_of},
    "it were the second box itself": {"start": second_of, "stop": second_of},
    "bounds counted from the beginning of the first box": {"then": "first"},
    "bounds counted from the beginning of the second box": {"then": "second"},
    "sizes were returned, and not where it stops": {"then": "sizes"},
    "a range of one number were none": {"least": 2},
}


def cause_of_overlaps(exercise):
    def asked(mine, theirs):
        found = exercise.overlap(mine, theirs)
        return found if found is None else tuple(map(tuple, found))

    cases = [
        pair
        for shape in SHAPES
        for pair in itertools.product(boxes(shape, (2, 3)), boxes(shape, (3, 2)))
    ]
    return variants.cause_in(asked, cases, overlap_of, MISTAKEN_OVERLAP)


@pytest.mark.ranks(1)
def test_overlap(exercise, seed):
    """The part that two boxes share, or None."""
    cause = cause_of_overlaps(exercise)
    for shape in SHAPES:
        everywhere = torch.arange(shape[0] * shape[1]).view(shape)
        for mine in boxes(shape, (2, 3)):
            for theirs in boxes(shape, (3, 2)):
                both = set(cut(everywhere, mine).flatten().tolist())
                both &= set(cut(everywhere, theirs).flatten().tolist())
                found = exercise.overlap(mine, theirs)
                what = f"the overlap of {mine} and {theirs}"
                if not both:
                    told = f"{what} is {found}, expected None"
                    expect.that(found is None, told, cause=cause)
                    continue
                told = f"{what} is None, but they share some"
                expect.that(found is not None, told, cause=cause)
                expect.that(is_box(found), f"{what} is {found}, which is no box")
                shared = cut(everywhere, found).flatten().tolist()
                inside_both = sorted(both)
                what = f"what is in {what}"
                expect.equal(sorted(shared), inside_both, what, cause=cause)


@pytest.mark.ranks(3, 4)
def test_each_rank_gets_its_shard(exercise, rank, world_size, seed, shared_dir):
    """Saved on one grid and loaded on another: each rank's shard of the same matrix."""
    generator = torch.Generator().manual_seed(seed)
    for shape in SHAPES:
        matrix = torch.randn(shape, generator=generator, dtype=torch.float64)
        for saved_on in SAVED_ON:
            for loaded_on in LOADED_ON[world_size]:
                load_and_compare(exercise, matrix, saved_on, loaded_on, rank)


LAST_PART = "the shard were the last part that was read: copy each one into it"
PLACES = {
    "each part were copied to where it is in its file, not in this rank's shard": (
        lambda start, of_file, own: start
    ),
    "each part were copied to where it is in the whole matrix": (
        lambda start, of_file, own: start + of_file
    ),
}


def assembled(mine, calls, place):
    """This rank's shard if each part is copied to a place; NaN elsewhere.

    Raises:
        RuntimeError: a part has no room there.
    """
    sizes = [stop - start for start, stop in mine]
    shard = torch.full(sizes, torch.nan, dtype=torch.float64)
    for box, slices, part in calls:
        starts = [
            place(piece.start or 0, of_file[0], own[0])
            for piece, of_file, own in zip(slices, box, mine, strict=False)
        ]
        to = [slice(at, at + n) for at, n in zip(starts, part.shape, strict=False)]
        shard[tuple(to)] = part
    return shard


def same_numbers(one, other):
    """Whether both have the same numbers, and NaN at the same places."""
    if one.shape != other.shape:
        return False
    return torch.equal(one.nan_to_num(nan=777.0), other.nan_to_num(nan=777.0))


def causes_of_shard(found, mine, calls):
    """The words of all mistakes that lead to this shard."""
    if not torch.is_tensor(found) or not calls:
        return []
    causes = []
    if len(calls) > 1 and same_numbers(found, calls[-1][2]):
        causes.append(LAST_PART)
    for words, place in PLACES.items():
        with contextlib.suppress(RuntimeError):
            if same_numbers(found, assembled(mine, calls, place)):
                causes.append(words)
    return causes


def cause_on_all_ranks(exercise, matrix, saved, every_box):
    """What explains the shards of all ranks alike, or "".

    A rank's shard alone may look like several mistakes: if none of it was
    written, the parts may have gone to any place beyond it.
    """
    in_common = [LAST_PART, *PLACES]
    for mine in every_box:
        calls = []

        def read(number, slices, calls=calls):
            part = cut(matrix, saved[number])[slices].clone()
            calls.append((saved[number], slices, part.clone()))
            return part

        try:
            with unwritten_is_nan():
                found = exercise.load_shard(mine, dict(saved), read)
        except Exception:  # that rank will report it
            continue
        if torch.is_tensor(found) and same_numbers(found, cut(matrix, mine)):
            continue
        causes = causes_of_shard(found, mine, calls)
        in_common = [words for words in in_common if words in causes]
    return in_common[0] if in_common else ""


def load_and_compare(exercise, matrix, saved_on, loaded_on, rank):
    # every second rank has saved, and the last one comes first
    saved = {2 * k: box for k, box in enumerate(boxes(matrix.shape, saved_on))}
    saved = dict(reversed(saved.items()))
    mine = boxes(matrix.shape, loaded_on)[rank]
    numbers_read, calls = [], []

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
        calls.append((saved[number], slices, shard[slices].clone()))
        return shard[slices].clone()

    how = f"of {list(matrix.shape)}, saved on {saved_on}, loaded on {loaded_on}"
    given = dict(saved)
    with unwritten_is_nan():
        shard = exercise.load_shard(mine, given, read)
    right, what = cut(matrix, mine).clone(), f"the shard {how}"
    cause = ""
    if torch.is_tensor(shard) and not same_numbers(shard, right):
        every_box = boxes(matrix.shape, loaded_on)
        cause = cause_on_all_ranks(exercise, matrix, saved, every_box)
    if cause:  # a known one, so NaN needs no other
        expect.close(shard, right, what, cause=cause)
    expect.equal(shard, right, what)
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
