"""Checks of exercises/03_deadlock.py."""

import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

ROWS, WIDTH = 3, 5


def all_strips(seed, world_size, width=WIDTH):
    """[W, rows, width]: the whole field, cut into one strip per rank."""
    generator = torch.Generator().manual_seed(seed)
    shape = world_size, ROWS, width
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def right_rows(from_left, from_right, left, right, when):
    """Compare both rows; ``left`` and ``right`` are the neighbors' strips."""
    two_ranks = torch.equal(left, right)
    both = "both come from one rank here, and messages arrive in the order in which "
    expect.that(
        not (torch.equal(from_left, right[0]) and torch.equal(from_right, left[-1])),
        "the two rows are swapped" + f": {both}it sends them" * two_ranks,
    )
    expect.that(
        two_ranks or not torch.equal(from_left, left[0]),
        f"the row from the left{when} is that rank's first row, expected its last",
    )
    expect.that(
        torch.equal(from_left, left[-1]) or not torch.equal(from_left, right[0]),
        f"the row from the left{when} is the one from the right: are both received "
        "into the same tensor?",
    )
    expect.equal(from_left, left[-1], f"the row from the left{when}")
    expect.that(
        torch.equal(from_right, right[0]) or not torch.equal(from_right, left[-1]),
        f"the row from the right{when} is the one from the left",
    )
    expect.equal(from_right, right[0], f"the row from the right{when}")


def check_edges(exercise, rank, world_size, seed, when, dtype=torch.float64):
    strips = (1000 * all_strips(seed, world_size)).to(dtype)
    strip = strips[rank].clone()
    from_left, from_right = exercise.exchange_edges(strip)
    # at once, before a transfer that was not waited for can arrive
    from_left, from_right = from_left.clone(), from_right.clone()
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    right_rows(from_left, from_right, strips[left], strips[right], when)
    expect.equal(strip, strips[rank], f"this rank's own strip{when}")


@pytest.mark.ranks(4, 3)
def test_every_rank_gets_both_edges(exercise, rank, world_size, seed):
    """No rank waits forever, and each gets the rows of both neighbors."""
    check_edges(exercise, rank, world_size, seed, "")


@pytest.mark.ranks(3, 4)
def test_a_late_rank(exercise, rank, world_size, seed):
    """The rows have arrived when the function returns, even from a late rank."""
    if rank == 1:
        time.sleep(0.3)
    check_edges(exercise, rank, world_size, seed, " with a late rank")


@pytest.mark.ranks(2)
def test_two_ranks(exercise, rank, world_size, seed):
    """With two ranks the other one is the neighbor on both sides."""
    check_edges(exercise, rank, world_size, seed, " of two ranks")


@pytest.mark.ranks(3)
def test_whole_numbers(exercise, rank, world_size, seed):
    """If the strip has another dtype, such as int64, so do the rows."""
    check_edges(exercise, rank, world_size, seed, " of whole numbers", torch.int64)


@pytest.mark.ranks(3, 4)
def test_again_and_again(exercise, rank, world_size, seed):
    """Twenty times in a row, the strips overwritten as soon as the call returns."""
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    width = 20_000
    for step in range(20):
        strips = all_strips(100 * seed + step, world_size, width)
        strip = strips[rank].clone()
        from_left, from_right = exercise.exchange_edges(strip)
        strip.fill_(float("nan"))
        expect.equal(from_left, strips[left][-1], f"the row from the left, {step=}")
        expect.equal(from_right, strips[right][0], f"the row from the right, {step=}")


@pytest.mark.ranks(4)
def test_two_rows_leave_each_rank(exercise, rank, world_size, seed, ledger):
    """Each rank sends its two edges, each to the one neighbor that needs it."""
    strip = all_strips(seed, world_size)[rank].clone()
    ledger.clear()
    exercise.exchange_edges(strip)
    rows = list(ledger.rows)
    dist.barrier()
    others = sorted({row.op for row in rows} - {"send", "recv"})
    expect.right_way(
        not others,
        f"{', '.join(others)} involves every rank: two neighbors are enough",
    )
    sent = sum(  # how large a pickled row is, nobody asks
        row.bytes
        for row in rows
        if row.op == "send" and row.caller != "send_object_list"
    )
    needed = 2 * strip[0].nbytes
    expect.right_way(
        sent <= needed, f"this rank sent {sent} bytes, its edges have {needed}"
    )
