"""Checks of exercises/05_sampler.py."""

import pytest
import torch
from torch.utils.data import DistributedSampler

from workshop.grader import expect, variants
from workshop.grader.by_hand import by_hand

SIZES = (13, 12, 14, 15, 40, 5, 2, 1)
WORLDS = (3, 4, 1, 7)


def torchs(size, world_size, rank, seed, epoch, shuffle):
    """The share that torch's sampler gives."""
    sampler = DistributedSampler(range(size), world_size, rank, shuffle, seed)
    sampler.set_epoch(epoch)
    return list(sampler)


def order_of(size, seed, epoch, shuffle, *, start=sum, then=list):
    """The order of an epoch; the keywords are what goes wrong."""
    if not shuffle:
        return list(range(size))
    generator = torch.Generator().manual_seed(start((seed, epoch)))
    return then(torch.randperm(size, generator=generator).tolist())


MISTAKEN_ORDER = {
    "the generator were seeded with the seed alone, in every epoch": {
        "start": lambda given: given[0]
    },
    "the generator were seeded with the epoch alone": {"start": lambda given: given[1]},
    "the generator were seeded with seed * epoch": {
        "start": lambda given: given[0] * given[1]
    },
    "the generator were seeded with seed + epoch + 1": {
        "start": lambda given: sum(given) + 1
    },
    "the generator were always seeded with 0": {"start": lambda given: 0},
    "nothing were shuffled": {"then": sorted},
    "the order were reversed": {"then": lambda order: order[::-1]},
    "the permutation were inverted: it's the order itself": {
        "then": lambda order: [order.index(n) for n in range(len(order))]
    },
}


@pytest.mark.ranks(1, init=False)
def test_order_of_an_epoch(exercise, seed):
    """Shuffled by seed + epoch, as torch does it."""
    cases = [(size, seed, epoch, True) for size in SIZES for epoch in (0, 1, 5)]
    asked = exercise.epoch_order, cases, order_of, MISTAKEN_ORDER
    cause = variants.cause_in(*asked, most=1)
    for size, _, epoch, _ in cases:
        order = exercise.epoch_order(size, seed, epoch, True)
        expected = torchs(size, 1, 0, seed, epoch, True)
        what = f"the order of {size} in epoch {epoch}"
        expect.equal(order, expected, what, cause=cause)
    expect.equal(exercise.epoch_order(4, seed, 1, False), [0, 1, 2, 3], "no shuffle")


@pytest.mark.ranks(1, init=False)
def test_global_random_numbers_stay(exercise, seed):
    """The global random numbers stay unchanged: dropout and initialization use them."""
    seeds, seed_everything = [], torch.manual_seed

    def noted(number):
        seeds.append(number)
        return seed_everything(number)

    before = torch.get_rng_state()
    torch.manual_seed = torch.random.manual_seed = noted
    try:
        order = exercise.epoch_order(20, seed, 3, True)
    finally:
        torch.manual_seed = torch.random.manual_seed = seed_everything
    expect.equal(order, torchs(20, 1, 0, seed, 3, True), "the order of 20 in epoch 3")
    expect.right_way(
        torch.equal(torch.get_rng_state(), before),
        "torch's global random numbers were used or seeded: make a torch.Generator",
    )
    expect.right_way(
        not seeds,
        "torch.manual_seed was called, which seeds the global generators of all GPUs, "
        "too: make a torch.Generator and call its manual_seed",
    )


def is_a_list(found, label):
    kind = type(found).__name__
    expect.that(isinstance(found, list), f"{label}: is a {kind}, expected a list")


def padded_of(indices, world_size, *, fill="beginning", least=0, number=None):
    """``indices``, padded; the keywords are what goes wrong."""
    missing = -len(indices) % world_size or least * world_size
    if number == "cut":
        return indices[: len(indices) // world_size * world_size]
    if number == "once":
        missing = min(missing, len(indices))
    if number == "one":
        missing = min(missing, 1)
    filled = {
        "beginning": [indices[k % len(indices)] for k in range(missing)],
        "end": [indices[-1 - k % len(indices)] for k in range(missing)][::-1],
        "first": [indices[0]] * missing,
        "last": [indices[-1]] * missing,
        "second": [indices[(k + 1) % len(indices)] for k in range(missing)],
        "zeros": [0] * missing,
        "backwards": [indices[-1 - k % len(indices)] for k in range(missing)],
        "counted": list(range(missing)),
        "in front": [],
    }
    if fill == "in front":
        return [indices[k % len(indices)] for k in range(missing)] + indices
    return indices + filled[fill]


MISTAKEN_PADDING = {
    "it were padded with the end of the list": {"fill": "end"},
    "it were padded with the end of the list, backwards": {"fill": "backwards"},
    "it were padded with the first index again and again": {"fill": "first"},
    "it were padded with the last index again and again": {"fill": "last"},
    "it were padded from the second index on": {"fill": "second"},
    "it were padded with zeros": {"fill": "zeros"},
    "it were padded with 0, 1, 2 ..., and not with the list's own indices": {
        "fill": "counted"
    },
    "the padding were put in front": {"fill": "in front"},
    "a list that needs no padding were padded by a whole round": {"least": 1},
    "the rest were dropped, not padded": {"number": "cut"},
    "the list were repeated no more than once: it may be shorter than the padding": {
        "number": "once"
    },
    "one index were always enough": {"number": "one"},
}


@pytest.mark.ranks(1, init=False)
def test_padding(exercise):
    """The list is padded with its own beginning, and only as far as needed."""
    cases = [
        ([10 + 3 * i for i in range(size)], world_size)
        for size in SIZES
        for world_size in WORLDS
    ]
    cause = variants.cause_in(exercise.pad, cases, padded_of, MISTAKEN_PADDING, most=1)
    for size in SIZES:
        for world_size in WORLDS:
            indices = [10 + 3 * i for i in range(size)]
            total = -(-size // world_size) * world_size
            expected = [indices[i % size] for i in range(total)]
            padded = exercise.pad(list(indices), world_size)
            label = f"{size} indices padded for a world of {world_size}"
            expect.that(padded is not None, f"{label}: None, is a `return` missing?")
            is_a_list(padded, label)
            length = f"the length of {label}"
            expect.equal(len(padded), total, length, cause=cause)
            expect.equal(list(padded), expected, label, cause=cause)


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


def share_of(size, world_size, rank, seed, epoch, shuffle, *, cut="strides", **wrong):
    """The share of a rank; the keywords are what goes wrong."""
    seed = wrong.get("of_seed", seed) + rank * wrong.get("of_rank", 0)
    epoch = wrong.get("of_epoch", epoch)
    order = order_of(size, seed, epoch, wrong.get("of_shuffle", shuffle))
    if not wrong.get("padded", True):
        return order[rank::world_size]
    if wrong.get("padded") == "cut":
        return padded_of(order, world_size, number="cut")[rank::world_size]
    if wrong.get("padded") == "before":  # and then shuffled
        padded = padded_of(list(range(size)), world_size)
        order = order_of(len(padded), seed, epoch, shuffle)
        return [padded[k] for k in order][rank::world_size]
    padded = padded_of(order, world_size)
    each = len(padded) // world_size
    cuts = {
        "strides": padded[rank::world_size],
        "blocks": padded[rank * each : (rank + 1) * each],
        "all": padded,
        "next": padded[(rank + 1) % world_size :: world_size],
        "last first": padded[world_size - 1 - rank :: world_size],
        "rank 0": padded[::world_size],
    }
    return cuts[cut]


MISTAKEN_SHARE = {
    "each rank had a block, not every N-th sample": {"cut": "blocks"},
    "every rank had all samples": {"cut": "all"},
    "every rank had rank 0's share": {"cut": "rank 0"},
    "rank 0 began with the second sample": {"cut": "next"},
    "the ranks were counted from the last one": {"cut": "last first"},
    "nothing were padded": {"padded": False},
    "the rest were dropped, not padded": {"padded": "cut"},
    "the samples were padded first, and then shuffled": {"padded": "before"},
    "the order were that of epoch 0 in every epoch": {"of_epoch": 0},
    "the order were that of seed 0": {"of_seed": 0},
    "each rank had a seed of its own": {"of_rank": 1},
    "nothing were ever shuffled": {"of_shuffle": False},
    "everything were always shuffled": {"of_shuffle": True},
}


def cause_of_shares(exercise, seed, epoch, shuffle):
    cases = [
        (size, world_size, rank, seed, epoch, shuffle)
        for size in SIZES
        for world_size in WORLDS
        for rank in range(world_size)
    ]

    def asked(size, world_size, rank, seed, epoch, shuffle):
        told = {"seed": seed, "epoch": epoch, "shuffle": shuffle}
        return exercise.share(size, world_size, rank, **told)

    return variants.cause_in(asked, cases, share_of, MISTAKEN_SHARE, most=1)


def compare_shares(exercise, seed, epoch, shuffle):
    cause = cause_of_shares(exercise, seed, epoch, shuffle)
    for size in SIZES:
        for world_size in WORLDS:
            for rank in range(world_size):
                expected = torchs(size, world_size, rank, seed, epoch, shuffle)
                found = exercise.share(
                    size, world_size, rank, seed=seed, epoch=epoch, shuffle=shuffle
                )
                label = f"rank {rank}'s share of {size}, world of {world_size}"
                order = f"epoch {epoch}" if shuffle else "not shuffled"
                expect.equal(found, expected, f"{label}, {order}", cause=cause)
