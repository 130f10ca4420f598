"""Checks of exercises/22_no_tokens.py: against all rows in one process."""

import time

import pytest
import torch
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()

WIDTH = 5  # so that the rows of all ranks aren't as many as a rank's numbers
UNEQUAL = [[1, 2, 0, 3], [0, 0, 0, 0], [4, 0, 1, 2], [2, 1, 0, 0]]
ALL_TO_0 = [[2, 0, 0, 0], [1, 0, 0, 0], [4, 0, 0, 0], [3, 0, 0, 0]]
EVEN = [[2, 2, 2, 2]] * 4


def asked(table, world_size):
    """[ranks, ranks]: rows from each rank to each rank's experts."""
    return torch.tensor([row[:world_size] for row in table[:world_size]])


def drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def layers(seed, world_size):
    """The expert of each rank, and a layer before them that all ranks have."""
    torch.manual_seed(seed)
    experts = [nn.Linear(WIDTH, WIDTH).double() for _ in range(world_size)]
    return experts, nn.Linear(WIDTH, WIDTH).double()


def rows_of(rank, counts):
    totals = counts.sum(1).tolist()
    return slice(sum(totals[:rank]), sum(totals[: rank + 1]))


def in_one_process(counts, x, experts):
    """All rows through the expert that each one asks for."""
    owner = torch.arange(len(counts)).repeat(len(counts))
    owner = owner.repeat_interleave(counts.flatten())
    outputs = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        asked_for = (owner == number).nonzero().flatten()
        outputs = outputs.index_add(0, asked_for, expert(x[asked_for]))
    return outputs


def compare(exercise, rank, world_size, table, seed, label):
    """Outputs, the loss, and the gradients of this rank's expert and first layer."""
    counts = asked(table, world_size)
    x, targets = (drawn(seed + n, int(counts.sum()), WIDTH) for n in (1, 2))
    experts, before = layers(seed, world_size)
    own = rows_of(rank, counts)
    whole = in_one_process(counts, before(x), experts)
    own_experts, own_before = layers(seed, world_size)
    rows = own_before(x[own])
    sent = counts[rank].tolist()
    found = exercise.through_experts(rows, sent, own_experts[rank])
    expect.close(found, whole[own], f"the outputs {label}")
    share = exercise.backward_of_batch(found, targets[own])
    squares = (whole - targets).square()
    right = squares[own].sum() / squares.numel()
    names = {
        "the loss of the whole batch, instead of this rank's share": squares.mean(),
        "the sum divided by the rows of all ranks: each row has H numbers": (
            squares[own].sum() / len(squares)
        ),
    }
    if len(squares[own]):
        mean = squares[own].mean()
        names["the mean of this rank's rows"] = mean
        names[
            "the mean of this rank's rows, divided by the number of ranks, which don't "
            "have equally many rows"
        ] = mean / world_size
    expect.close(share, right.detach(), f"the share {label}", mistaken=names)
    squares.mean().backward()
    expert = own_experts[rank]
    expect.that(
        expert.weight.grad is not None,
        f"the expert's weight {label} got no gradient: its rows, of which there may be "
        "none, have to go through experts, with autograd",
    )
    expect.gradient(
        expert.weight, experts[rank].weight.grad, f"the expert's weight {label}"
    )
    of_own = torch.autograd.grad(
        (in_one_process(counts, before(x), experts) - targets).square()[own].sum()
        / squares.numel(),
        before.weight,
    )[0]
    expect.gradient(own_before.weight, of_own, f"the first layer's weight {label}")


@pytest.mark.ranks(3, 4)
def test_every_rank_has_rows(exercise, rank, world_size, seed):
    """All ranks have rows, and all experts get some."""
    compare(exercise, rank, world_size, EVEN, seed, "of 2 rows for each rank")


@pytest.mark.ranks(3, 4)
def test_experts_without_rows(exercise, rank, world_size, seed):
    """All rows are for rank 0: the experts of the other ranks get none."""
    compare(exercise, rank, world_size, ALL_TO_0, seed, "of rows for rank 0 only")


@pytest.mark.ranks(3, 4)
def test_a_rank_without_rows(exercise, rank, world_size, seed):
    """Rank 1 has no rows, and its expert gets some of the others'."""
    if rank == 2:
        time.sleep(0.05)
    compare(exercise, rank, world_size, UNEQUAL, seed, "with a rank without rows")
