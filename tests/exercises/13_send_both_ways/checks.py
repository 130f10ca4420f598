"""Checks of exercises/13_send_both_ways.py."""

import contextlib
import inspect
import sys
import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()

LARGE = 300_000  # numbers: far more than fits on its way between two processes


def message(seed, sender, way, size):
    """What a rank sends: +1 is an activation for the next rank, -1 a gradient."""
    generator = torch.Generator().manual_seed(seed * 100 + sender * 10 + way)
    return torch.randn(size, sender + 2, generator=generator, dtype=torch.float64)


def own_part(rank, world_size, seed, size):
    """(activation, gradient, shapes) of this rank."""
    last = rank == world_size - 1
    activation = None if last else message(seed, rank, 1, size)
    gradient = message(seed, rank, -1, size) if rank else None
    before = (size, rank + 1) if rank else None
    after = None if last else (size, rank + 3)
    return activation, gradient, (before, after)


def compare(found, rank, world_size, seed, size):
    """What arrived is what the two neighbors sent."""
    pair = isinstance(found, (tuple, list)) and len(found) == 2
    expect.that(pair, "return what both neighbors sent, as the skeleton does")
    cases = ((found[0], rank - 1, 1, "previous"), (found[1], rank + 1, -1, "next"))
    for tensor, sender, way, name in cases:
        what = f"what the {name} rank sent"
        if not 0 <= sender < world_size:
            alone = f"{what} must be None here: there's no such rank"
            expect.that(tensor is None, alone)
            continue
        right = message(seed, sender, way, size)
        other_way = message(seed, sender, -way, size)
        names = {"what that rank sent the other way": other_way}
        expect.close(tensor, right, what, mistaken=names)


def run(exchange, rank, world_size, seed, size):
    """One exchange; afterwards, what was sent is overwritten at once."""
    activation, gradient, shapes = own_part(rank, world_size, seed, size)
    found = exchange(activation, gradient, shapes)
    for sent in (activation, gradient):
        if sent is not None:
            sent.fill_(7.0)
    compare(found, rank, world_size, seed, size)


@contextlib.contextmanager
def calls_of(*functions):
    """The arguments of each call of these, except for those by torch.distributed."""
    codes, seen = [inspect.unwrap(one).__code__ for one in functions], []
    theirs = sys.modules[dist.P2POp.__module__].__dict__

    def note(frame, event, _argument):
        if event == "call" and frame.f_code in codes:
            caller = frame.f_back
            if caller is not None and caller.f_globals is not theirs:
                seen.append(dict(frame.f_locals))

    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)


@pytest.mark.ranks(3, 4)
def test_a_batch_brings_what_the_neighbors_sent(exercise, rank, world_size, seed):
    """exchange: what both neighbors sent arrives, before it returns."""
    run(exercise.exchange, rank, world_size, seed, 5)


@pytest.mark.ranks(3, 4)
def test_turns_bring_what_the_neighbors_sent(exercise, rank, world_size, seed):
    """exchange_in_turns: what both neighbors sent arrives, before it returns."""
    run(exercise.exchange_in_turns, rank, world_size, seed, 5)


@pytest.mark.ranks(3, 4)
def test_large_messages_and_a_late_rank(exercise, rank, world_size, seed):
    """Large messages arrive, too, and twice, with a rank that is late."""
    if rank == 1:
        time.sleep(0.1)
    run(exercise.exchange, rank, world_size, seed, LARGE)
    run(exercise.exchange_in_turns, rank, world_size, seed + 1, LARGE)


@pytest.mark.ranks(4)
def test_all_messages_of_a_rank_are_one_batch(exercise, rank, world_size, seed):
    """exchange: all messages of a rank are started by one batch_isend_irecv."""
    with calls_of(dist.batch_isend_irecv) as batches:
        run(exercise.exchange, rank, world_size, seed, 5)
    messages = 2 if rank in (0, world_size - 1) else 4
    sizes = [len(batch["p2p_op_list"]) for batch in batches]
    found = f"{len(sizes)} batches with {sizes} messages"
    if not sizes:
        found = "no batch, only single messages"
    expect.right_way(
        sizes == [messages],
        f"exchange must start its {messages} messages in one batch_isend_irecv, but it "
        f"started {found}. With NCCL, they would be queued one after the other",
    )


@pytest.mark.ranks(4)
def test_turns_use_send_and_recv_only(exercise, rank, world_size, seed):
    """exchange_in_turns: nothing but dist.send and dist.recv."""
    others = dist.isend, dist.irecv, dist.batch_isend_irecv
    with calls_of(*others) as seen:
        run(exercise.exchange_in_turns, rank, world_size, seed, 5)
    expect.right_way(
        not seen,
        "exchange_in_turns must use only dist.send and dist.recv, and here it started "
        "messages with isend, irecv or a batch",
    )
