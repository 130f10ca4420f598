"""Checks of exercises/05_steps.py: against the sampler and the loader of each rank."""

import dataclasses
import math

import pytest
from torch.utils.data import DataLoader, DistributedSampler

from workshop.grader import expect, variants

expect.nothing_is_averaged()

FIELDS = ("steps", "in_full_step", "in_last_step", "repeated")
EVEN = [(1200, 25, 3), (64, 8, 4), (1024, 32, 1), (24, 8, 3)]
UNEVEN = [(1438, 32, 2), (1438, 32, 4), (359, 16, 3), (10, 4, 4), (7, 8, 3), (2, 5, 4)]


def real(images, batch_size, ranks):
    """The four numbers, counted in the batches that each rank's loader gives."""
    batches = []
    for rank in range(ranks):
        sampler = DistributedSampler(range(images), ranks, rank, shuffle=False)
        loader = DataLoader(range(images), batch_size, sampler=sampler)
        batches.append([len(batch) for batch in loader])
    read = sum(map(sum, batches))
    last = sum(sizes[-1] for sizes in batches)
    return len(batches[0]), batch_size * ranks, last, read - images


def number(
    images,
    batch_size,
    ranks,
    field,
    *,
    share="up",
    batch="rank",
    last="all",
    cut=False,
    repeats="of a rank's share",
):
    """One of the four numbers; the keywords are what goes wrong."""
    own = {"up": -(-images // ranks), "down": images // ranks, "all": images}[share]
    size = {"rank": batch_size, "all ranks": batch_size / ranks}[batch]
    steps = math.ceil(own / size)
    if cut:
        steps = max(own // batch_size, 0)
    in_last = own - (steps - 1) * size
    if last == "full":
        in_last = size * ranks
    if last == "all":
        in_last *= ranks
    if last == "no repeats":
        in_last = images - (steps - 1) * size * ranks
    repeated = own * ranks - images
    if repeats == "of full batches":
        repeated = steps * size * ranks - images
    if repeats == "never below 0":
        repeated = max(repeated, 0)
    values = steps, size * ranks, in_last, repeated
    return dict(zip(FIELDS, values, strict=True))[field]


MISTAKES = {
    "each rank read all images": {"share": "all"},
    "images were left out, where the sampler repeats some": {"share": "down"},
    "batch_size were that of all ranks together, not of each": {"batch": "all ranks"},
    "the last step had the images of one rank only": {"last": "one"},
    "the last step were always full": {"last": "full"},
    "the last step had no repeated images": {"last": "no repeats"},
    "the loader dropped its last, smaller batch": {"cut": True},
    "images were repeated until all batches are full": {"repeats": "of full batches"},
    "no image were repeated where some are left out": {"repeats": "never below 0"},
}


def check(exercise, cases):
    found, asked = [], []
    for case in cases:
        epoch = exercise.epoch_of(*case)
        kind = type(epoch).__name__
        is_epoch = dataclasses.is_dataclass(epoch)
        expect.that(is_epoch, f"epoch_of{case} returned {kind}, and not an Epoch")
        for field in FIELDS:
            found.append(getattr(epoch, field))
            asked.append((*case, field))
    cause = variants.cause(found, asked, number, MISTAKES)
    for value, (*case, field) in zip(found, asked, strict=True):
        right = dict(zip(FIELDS, real(*case), strict=True))[field]
        what = "{} of {} images, batches of {}, {} ranks".format(field, *case)
        expect.equal(value, right, what, cause=cause)
        expect.number(value, right, what)


@pytest.mark.ranks(1)
def test_an_epoch_that_fits(exercise, seed):
    """All batches are full, and no image is repeated."""
    check(exercise, EVEN)


@pytest.mark.ranks(1)
def test_an_epoch_with_a_remainder(exercise, seed):
    """The last batch is smaller, or the sampler repeats images, or both."""
    check(exercise, UNEVEN)
