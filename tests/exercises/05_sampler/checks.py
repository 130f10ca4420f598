"""Checks of exercises/05_sampler.py."""

import pytest
import torch
from torch.utils.data import DistributedSampler

from workshop.grader import expect
from workshop.grader.by_hand import by_hand

SIZES = (13, 12, 14, 15, 40, 5, 2, 1)
WORLDS = (3, 4, 1, 7)


def torchs(size, world_size, rank, seed, epoch, shuffle):
    """The share that torch's sampler gives."""
    sampler = DistributedSampler(range(size), world_size, rank, shuffle, seed)
    sampler.set_epoch(epoch)
    return list(sampler)


@pytest.mark.ranks(1, init=False)
def test_order_of_an_epoch(exercise, seed):
    """Shuffled by seed + epoch, as torch does it."""
    for size in SIZES:
        for epoch in (0, 1, 5):
            order = exercise.epoch_order(size, seed, epoch, True)
            expected = torchs(size, 1, 0, seed, epoch, True)
            expect.equal(order, expected, f"the order of {size} in epoch {epoch}")
    expect.equal(exercise.epoch_order(4, seed, 1, False), [0, 1, 2, 3], "no shuffle")


@pytest.mark.ranks(1, init=False)
def test_global_random_numbers_stay(exercise, seed):
    """The global random numbers stay unchanged: dropout and initialization use them."""
    before = torch.get_rng_state()
    order = exercise.epoch_order(20, seed, 3, True)
    expect.equal(order, torchs(20, 1, 0, seed, 3, True), "the order of 20 in epoch 3")
    expect.right_way(
        torch.equal(torch.get_rng_state(), before),
        "torch's global random numbers were used or seeded: make a torch.Generator",
    )


def is_a_list(found, label):
    kind = type(found).__name__
    expect.that(isinstance(found, list), f"{label}: is a {kind}, expected a list")


@pytest.mark.ranks(1, init=False)
def test_padding(exercise):
    """The list is padded with its own beginning, and only as far as needed."""
    for size in SIZES:
        for world_size in WORLDS:
            indices = [10 + 3 * i for i in range(size)]
            total = -(-size // world_size) * world_size
            expected = [indices[i % size] for i in range(total)]
            padded = exercise.pad(list(indices), world_size)
            label = f"{size} indices padded for a world of {world_size}"
            expect.that(padded is not None, f"{label}: None, is a `return` missing?")
            is_a_list(padded, label)
            expect.equal(len(padded), total, f"the length of {label}")
            expect.equal(list(padded), expected, label)


@pytest.mark.ranks(1, init=False)
def test_the_list_itself_stays(exercise):
    """pad returns a new list; the caller's is not changed."""
    indices = [4, 0, 2, 1, 3]
    exercise.pad(indices, 3)
    expect.equal(indices, [4, 0, 2, 1, 3], "the caller's list after pad")
    expect.that(
        exercise.pad(indices, 5) is not indices,
        "pad returned the list that it was given: make a new one, even if there is "
        "nothing to pad",
    )


@pytest.mark.ranks(1, init=False)
def test_shares_in_order(exercise, seed, ledger):
    """Without shuffling, every rank's share is that of torch's sampler."""
    with by_hand(ledger, DistributedSampler):
        compare_shares(exercise, seed, epoch=0, shuffle=False)


@pytest.mark.ranks(1, init=False)
def test_shuffled_shares(exercise, seed):
    """With shuffling, every rank's share is that of torch's sampler, in any epoch."""
    for epoch in (0, 1, 4):
        compare_shares(exercise, seed, epoch, shuffle=True)


def compare_shares(exercise, seed, epoch, shuffle):
    for size in SIZES:
        for world_size in WORLDS:
            for rank in range(world_size):
                expected = torchs(size, world_size, rank, seed, epoch, shuffle)
                found = exercise.share(
                    size, world_size, rank, seed=seed, epoch=epoch, shuffle=shuffle
                )
                label = f"rank {rank}'s share of {size}, world of {world_size}"
                order = f"epoch {epoch}" if shuffle else "not shuffled"
                expect.equal(found, expected, f"{label}, {order}")
