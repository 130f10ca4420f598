"""Checks of exercises/03_uneven_all_gather.py."""

import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()


def all_rows(lengths, seed, width=3, dtype=torch.float64):
    """One tensor per rank, [lengths[r], width]; the last row looks like padding."""
    generator = torch.Generator().manual_seed(seed)
    total = sum(lengths)
    numbers = torch.randperm(total * width, generator=generator) + 1
    if dtype in (torch.float64, torch.int64):  # more digits than a shorter dtype has
        numbers = numbers + 2**60 if dtype is torch.int64 else numbers / 3
    rows = list(numbers.to(dtype).view(total, width).split(lengths))
    for rank, mine in enumerate(rows):
        mine[-1:] = -(rank % 2)  # zeros on one rank, -1 on the next
    return rows


def check_gather(exercise, rank, rows, what):
    mine = rows[rank].clone()
    gathered = exercise.all_gather_uneven(mine)
    expect.that(
        isinstance(gathered, (list, tuple))
        and len(gathered) == len(rows)
        and all(map(torch.is_tensor, gathered)),
        f"all_gather_uneven must return a list of {len(rows)} tensors, one per rank",
    )
    for source, (actual, expected) in enumerate(zip(gathered, rows, strict=True)):
        expect.equal(actual, expected, f"the rows of rank {source}, {what}")
    expect.equal(mine, rows[rank], f"this rank's own rows afterwards, {what}")
    return gathered


def bytes_to_each(call, rank, world_size):
    """What a rank sends to each other rank by this call, on average."""
    if call.op == "recv" or (call.op in ("broadcast", "scatter") and call.root != rank):
        return 0  # only room to receive
    if call.op == "send":
        return call.bytes / (world_size - 1)
    return call.bytes / world_size if "all_to_all" in call.op else call.bytes


@pytest.mark.ranks(3, 4)
def test_lengths(exercise, rank, world_size, seed):
    """gather_lengths: the length of each rank, in the order of the ranks."""
    # more than 8 or 16 bits hold, and then more than the digits of float32
    for long in (70_000, 2**24 + 1):
        expected = [(7 * r + seed) % 5 + r for r in range(world_size)]
        expected[1] = long
        same_lengths(exercise.gather_lengths(expected[rank]), expected)


def same_lengths(found, expected):
    kind = type(found).__name__
    is_list = isinstance(found, (list, tuple))
    expect.that(is_list, f"gather_lengths returned {kind}, expected a list of int")
    expect.equal(found, expected, "gather_lengths")
    for source, length in enumerate(found):
        expect.number(length, expected[source], f"gather_lengths, item {source}")


@pytest.mark.ranks(3, 4)
def test_equal_lengths(exercise, rank, world_size, seed):
    """With equal lengths, the rows of each rank in their place."""
    rows = all_rows([2] * world_size, seed)
    first = check_gather(exercise, rank, rows, "equal lengths")
    check_gather(exercise, rank, all_rows([2] * world_size, seed + 10), "equal lengths")
    what = "the rows of rank 0 in the first result, after a second call"
    expect.equal(first[0], rows[0], what)


@pytest.mark.ranks(3, 4)
def test_unequal_lengths(exercise, rank, world_size, seed):
    """With unequal lengths, exactly the rows of each rank and no padding."""
    for lengths in ([3, 1, 4, 2], [1, 5, 2, 7]):
        rows = all_rows(lengths[:world_size], seed)
        check_gather(exercise, rank, rows, f"lengths {lengths[:world_size]}")


@pytest.mark.ranks(4)
def test_empty_ranks_and_whole_numbers(exercise, rank, world_size, seed):
    """Ranks without rows, ranks with few, int64, float32 and bool."""
    for lengths, width, dtype in (
        ([0, 2, 0, 5], 2, torch.int64),
        ([4, 0, 1, 0], 1, torch.float32),
        ([2, 1, 3, 0], 2, torch.bool),
        ([0, 0, 0, 0], 2, torch.float64),
    ):
        rows = all_rows(lengths, seed, width, dtype)
        check_gather(exercise, rank, rows, f"lengths {lengths}, {dtype}")


@pytest.mark.ranks(3)
def test_a_late_rank(exercise, rank, world_size, seed):
    """The rows are there when the function returns, even those of a late rank."""
    rows = all_rows([2, 4, 1], seed)
    if rank == 1:
        time.sleep(0.3)
    check_gather(exercise, rank, rows, "with a late rank")


@pytest.mark.ranks(4)
def test_little_more_than_the_rows_travels(exercise, rank, world_size, seed, ledger):
    """No pickled objects, and no more padding than to the longest rank."""
    for lengths in ([40, 5, 60, 21], [3, 1, 2, 0]):
        send_little(exercise, rank, world_size, all_rows(lengths, seed, 30), ledger)


def send_little(exercise, rank, world_size, rows, ledger):
    dist.barrier()
    ledger.clear()
    gathered = exercise.all_gather_uneven(rows[rank].clone())
    calls = list(ledger.rows)
    expect.equal(list(gathered), rows, "the rows of all ranks")
    expect.right_way(
        not any("_object" in row.source + row.caller for row in calls),
        "objects were pickled to bytes: gather the tensors themselves",
    )
    sent = sum(bytes_to_each(call, rank, world_size) for call in calls)
    most = max(mine.nbytes for mine in rows) + 2 * world_size * 8  # the lengths, too
    expect.right_way(
        sent <= most,
        f"this rank sent {sent:.0f} bytes to each other one, at most {most} are "
        "needed: send tensors, and pad to the longest length, no further",
    )
    dist.barrier()
