"""Checks of exercises/03_ring_all_reduce.py."""

import math
import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()


def own_tensor(seed, rank, *shape):
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def sum_over_ranks(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total


def after_a_phase(tensors, *, send, into, adds):
    """Each rank's tensor after a phase of the ring.

    Args:
        tensors: those before it, of all ranks.
        send, into: for a step, the number of the chunk that is sent, and of the one for
            what arrives, counted from the rank.
        adds: whether what arrives is added, and doesn't replace.
    """
    ranks = len(tensors)
    held = [[chunk.clone() for chunk in one.chunk(ranks)] for one in tensors]
    for step in range(ranks - 1):
        sent = [held[r][(r + send(step)) % ranks].clone() for r in range(ranks)]
        for rank in range(ranks):
            number = (rank + into(step)) % ranks
            before = held[rank][number] if adds else 0
            held[rank][number] = before + sent[rank - 1]
    return [torch.cat(chunks) for chunks in held]


def cause_of(found, rank, tensors, mistakes):
    """The clause of the mistake that leads to this rank's tensor, or ""."""
    if not torch.is_tensor(found) or found.shape != tensors[rank].shape:
        return ""
    for words, options in mistakes.items():
        if torch.allclose(found, after_a_phase(tensors, **options)[rank]):
            return words
    return ""


UP = "chunk numbers went up with the step: from step to step they go down"
SAME = "the same chunk were sent in each step: the next step passes on what arrived"
PHASE_1 = {
    UP: {"send": lambda s: s, "into": lambda s: s - 1, "adds": True},
    f"{UP}, and what arrives belonged to the chunk after the one that is sent": {
        "send": lambda s: s,
        "into": lambda s: s + 1,
        "adds": True,
    },
    "what arrives belonged to the chunk after the one that is sent, not before it": {
        "send": lambda s: -s,
        "into": lambda s: 1 - s,
        "adds": True,
    },
    "what arrives belonged to the chunk that is sent, not to the one before it": {
        "send": lambda s: -s,
        "into": lambda s: -s,
        "adds": True,
    },
    SAME: {"send": lambda s: 0, "into": lambda s: -s - 1, "adds": True},
    f"{SAME}, and into the same one": {
        "send": lambda s: 0,
        "into": lambda s: -1,
        "adds": True,
    },
    "what arrives replaced the own chunk: in phase 1 it is added": {
        "send": lambda s: -s,
        "into": lambda s: -s - 1,
        "adds": False,
    },
    "it began with the chunk after that of the rank's number": {
        "send": lambda s: 1 - s,
        "into": lambda s: -s,
        "adds": True,
    },
}
PHASE_2 = {
    "what arrives were added to the own chunk: in phase 2 it replaces it": {
        "send": lambda s: 1 - s,
        "into": lambda s: -s,
        "adds": True,
    },
    UP: {"send": lambda s: 1 + s, "into": lambda s: s, "adds": False},
    SAME: {"send": lambda s: 1, "into": lambda s: -s, "adds": False},
    f"{SAME}, and into the same one": {
        "send": lambda s: 1,
        "into": lambda s: 0,
        "adds": False,
    },
    "what arrives replaced the chunk that is sent, not the one before it": {
        "send": lambda s: 1 - s,
        "into": lambda s: 1 - s,
        "adds": False,
    },
}


@pytest.mark.ranks(3, 4)
def test_phase_1_finishes_one_chunk(exercise, rank, world_size, seed):
    """Phase 1: chunk r + 1 of rank r is the sum over the ranks (equal chunks)."""
    tensor = own_tensor(seed, rank, 2 * world_size)
    expected = sum_over_ranks(tensor)
    mine = (rank + 1) % world_size
    own = tensor.chunk(world_size)[mine].clone()
    tensors = [own_tensor(seed, r, 2 * world_size) for r in range(world_size)]
    exercise.reduce_scatter_phase(tensor.chunk(world_size))
    cause = cause_of(tensor, rank, tensors, PHASE_1)
    expect.close(
        tensor.chunk(world_size)[mine],
        expected.chunk(world_size)[mine],
        "chunk r + 1 of rank r after phase 1",
        local=None if cause else own,
        cause=cause,
    )


@pytest.mark.ranks(3, 4)
def test_phase_2_hands_the_chunks_round(exercise, rank, world_size, seed):
    """Phase 2: chunk r + 1 of rank r replaces that chunk on every rank."""
    tensor = own_tensor(seed, rank, 2 * world_size)
    finished = tensor.chunk(world_size)[(rank + 1) % world_size].clone()
    everyone = [torch.empty_like(finished) for _ in range(world_size)]
    dist.all_gather(everyone, finished)
    expected = torch.cat([everyone[i - 1] for i in range(world_size)])
    before = tensor.clone()
    tensors: list[torch.Tensor] = [torch.empty_like(tensor) for _ in range(world_size)]
    dist.all_gather(tensors, tensor)
    own_number = [tensors[i].chunk(world_size)[i] for i in range(world_size)]
    mistaken = {"what chunk r of each rank r would leave": torch.cat(own_number)}
    exercise.all_gather_phase(tensor.chunk(world_size))
    what = "the tensor after phase 2"
    cause = cause_of(tensor, rank, tensors, PHASE_2)
    options = {"local": before, "mistaken": mistaken, "cause": cause}
    expect.close(tensor, expected, what, **options)


@pytest.mark.ranks(3, 4)
def test_every_rank_gets_the_sum(exercise, rank, world_size, seed):
    """Both phases: every rank holds the sum over the ranks, in place."""
    tensor = own_tensor(seed, rank, 3 * world_size)
    local, expected = tensor.clone(), sum_over_ranks(tensor)
    returned = exercise.ring_all_reduce(tensor)
    expect.close(tensor, expected, "the sum over the ranks", local=local)
    expect.close(returned, expected, "what ring_all_reduce returns")


@pytest.mark.ranks(3, 4)
def test_sizes_that_do_not_divide(exercise, rank, world_size, seed):
    """Any size and dtype: not only multiples of the world size, also smaller ones."""
    for shape, dtype in [
        ((10 * world_size + 2,), torch.float64),
        ((5, 7), torch.int64),
        ((2,), torch.float32),
        ((1,), torch.float64),
    ]:
        tensor = (8 * own_tensor(seed, rank, *shape)).to(dtype)
        if dtype is torch.int64:
            tensor = tensor * (2**54 + 1)  # float64 has no room for the last digits
        local, expected = tensor.clone(), sum_over_ranks(tensor)
        exercise.ring_all_reduce(tensor)
        name = f"the sum of {dtype} tensors of shape {list(shape)}"
        near = 1e-5 if dtype is torch.float32 else 1e-10
        expect.close(tensor, expected, name, local=local, atol=near, rtol=near)
        if dtype is torch.int64:
            expect.equal(tensor, expected, name)


@pytest.mark.ranks(4)
def test_a_late_rank(exercise, rank, world_size, seed):
    """The sum is right even if one rank is 0.3 s late."""
    tensor = own_tensor(seed, rank, 4 * world_size + 1)
    expected = sum_over_ranks(tensor)
    if rank == 2:
        time.sleep(0.3)
    exercise.ring_all_reduce(tensor)
    mine = tensor.clone()
    expect.close(mine, expected, "the sum with a late rank")


@pytest.mark.ranks(3, 4)
def test_each_rank_sends_2_w_minus_1_chunks(exercise, rank, world_size, seed, ledger):
    """Only sends and receives, and 2(N-1)/N times the tensor from each rank."""
    numel = 100 * world_size + 1
    tensor = own_tensor(seed, rank, numel)
    expected = sum_over_ranks(tensor)
    ledger.clear()
    exercise.ring_all_reduce(tensor)
    rows, sent = list(ledger.rows), ledger.bytes_sent()
    messages = sum(row.op == "send" for row in rows)
    expect.close(tensor, expected, "the sum over the ranks")
    others = sorted({row.op for row in rows} - {"send", "recv"})
    expect.right_way(
        others != ["barrier"],
        "barrier makes all ranks wait for each other: in a ring a rank waits for its "
        "neighbors only",
    )
    expect.right_way(
        not others,
        f"{', '.join(others)} does the work: build it from sends and receives",
    )
    longest = math.ceil(numel / world_size)
    most = 2 * (world_size - 1) * longest * tensor.element_size()
    expect.right_way(
        sent <= most,
        f"this rank sent {sent} bytes in {messages} messages, a ring needs at most "
        f"{most} in {2 * (world_size - 1)}: send one chunk in each step",
    )
    neighbors = {(rank + 1) % world_size, (rank - 1) % world_size}
    expect.right_way(
        {row.peer for row in rows} <= neighbors,
        "a rank of a ring talks to its two neighbors only",
    )
