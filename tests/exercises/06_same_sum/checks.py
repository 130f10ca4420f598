"""Checks of exercises/06_same_sum.py: bit for bit against one process."""

import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()

WIDTH = 61


def drawn(seed, count):
    """Gradients of all micro-batches, of different sizes: float32, as in training."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.logspace(-2, 2, WIDTH)
    return torch.randn(count, WIDTH, generator=generator) * sizes


def one_after_the_other(gradients):
    total = gradients[0].clone()
    for gradient in gradients[1:]:
        total += gradient
    return total


def all_reduced(own):
    """Every rank calls this: its own sum, then those of all."""
    total = own.sum(0)
    dist.all_reduce(total)
    return total


def cause_of(found, gradients, own, world_size):
    """What a sum that only rounds differently was added by; "" if it isn't known.

    Every rank calls this.
    """
    rank_by_rank = [gradients[rank::world_size] for rank in range(world_size)]
    sums = [one_after_the_other(part) for part in rank_by_rank if len(part)]
    by_all_reduce = all_reduced(own)
    orders = {
        "sum() of torch chose the order": gradients.sum(0),
        "rank 0's were added first, then rank 1's, and so on: gradient 1 is rank 1's "
        "first": one_after_the_other(torch.cat(rank_by_rank)),
        "each rank added its own, and then these sums were added": (
            one_after_the_other(torch.stack(sums))
        ),
        "each rank added its own, and an all-reduce added these sums": by_all_reduce,
        "they were added from the last to the first": (
            one_after_the_other(gradients.flip(0))
        ),
        "they were added in float64, and rounded once": gradients.double()
        .sum(0)
        .float(),
        "the first were left out": gradients[1:].sum(0),
        "the last were left out": gradients[:-1].sum(0),
    }
    right = one_after_the_other(gradients)
    if not torch.is_tensor(found) or found.shape != right.shape:
        return ""
    if torch.equal(found, right):
        return ""
    for words, total in orders.items():
        if torch.equal(found, total):
            return words
    if torch.allclose(found.float(), right, rtol=1e-4, atol=1e-3):
        return "they were added in another order: only the last bits differ"
    whole = [part for part in gradients.split(world_size) if len(part) == world_size]
    if whole and torch.allclose(found.float(), torch.cat(whole).sum(0), rtol=1e-4):
        return "a last round, in which not all ranks have one, were left out"
    return ""


def check(exercise, rank, world_size, seed, count):
    gradients = drawn(seed, count)
    own = gradients[rank::world_size].clone()
    before = own.clone()
    if rank == 1:
        time.sleep(0.05)
    found = exercise.sum_in_order(own, count)
    cause = cause_of(found, gradients, before, world_size)
    what = f"the sum of {count} gradients on {world_size} ranks"
    expect.equal(found, one_after_the_other(gradients), what, cause=cause)
    expect.unchanged(own, before, "own, this rank's gradients,")


@pytest.mark.ranks(3, 4)
def test_as_many_on_every_rank(exercise, rank, world_size, seed):
    """With equally many micro-batches on all ranks, the sum has the right bits."""
    check(exercise, rank, world_size, seed, 4 * world_size)


@pytest.mark.ranks(3, 4)
def test_one_more_on_some_ranks(exercise, rank, world_size, seed):
    """The sum has the same bits if some ranks have one micro-batch more."""
    check(exercise, rank, world_size, seed, 3 * world_size + 1)
    check(exercise, rank, world_size, seed + 1, 4 * world_size - 1)


@pytest.mark.ranks(3, 4)
def test_none_on_some_ranks(exercise, rank, world_size, seed):
    """With fewer micro-batches than ranks, ranks without any return the sum, too."""
    check(exercise, rank, world_size, seed, world_size - 1)
    check(exercise, rank, world_size, seed + 1, 1)


@pytest.mark.ranks(1)
def test_one_rank_alone(exercise, rank, world_size, seed):
    """One rank adds in the same order, and leaves its gradients as they are."""
    check(exercise, rank, world_size, seed, 5)
    check(exercise, rank, world_size, seed + 1, 1)
