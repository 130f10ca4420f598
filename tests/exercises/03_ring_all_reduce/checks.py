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


@pytest.mark.ranks(3, 4)
def test_phase_1_finishes_one_chunk(exercise, rank, world_size, seed):
    """Phase 1: chunk r + 1 of rank r is the sum over the ranks (equal chunks)."""
    tensor = own_tensor(seed, rank, 2 * world_size)
    expected = sum_over_ranks(tensor)
    mine = (rank + 1) % world_size
    own = tensor.chunk(world_size)[mine].clone()
    exercise.reduce_scatter_phase(tensor.chunk(world_size))
    expect.close(
        tensor.chunk(world_size)[mine],
        expected.chunk(world_size)[mine],
        "chunk r + 1 of rank r after phase 1",
        local=own,
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
    expect.close(tensor, expected, what, local=before, mistaken=mistaken)


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
