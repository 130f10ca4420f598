"""Checks of exercises/05_metrics.py."""

import gc
import time
import weakref
from itertools import chain

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

KEYS = ["images", "images_per_s", "loss"]


def batches(seed, counts):
    """(mean loss, images) of one batch for each of ``counts``."""
    generator = torch.Generator().manual_seed(seed)
    losses = 1 + torch.rand(len(counts), generator=generator, dtype=torch.float64)
    return list(zip(losses, counts, strict=True))


def fill(meter, some):
    for mean_loss, images in some:
        passed = mean_loss.clone().requires_grad_() * 1
        meter.update(passed, images)
        kept = passed.detach()
        expect.unchanged(kept, mean_loss, "the loss that was passed to update")
        cut = "update cut the caller's loss from its graph: backward() would now fail"
        expect.that(passed.requires_grad, f"{cut}, so use detach(), not detach_()")


def flat(by_rank):
    return list(chain.from_iterable(by_rank))


def mean_of(some):
    return sum(loss.item() * images for loss, images in some) / images_of(some)


def images_of(some):
    return sum(images for _, images in some)


def divides_own_images(exercise, rank, world_size, seed):
    """Whether ``images_per_s`` is of own images, which equal batches don't show."""
    by_rank = [batches(seed + r, [r * r + 1]) for r in range(world_size)]
    meter = exercise.Meter()
    fill(meter, by_rank[rank])
    found = meter.read(2.0)
    own = images_of(by_rank[rank]) / 2.0
    return isinstance(found, dict) and found.get("images_per_s") == own


def compare(found, everything, slowest_s, local, label, mistaken=(), own_alone=True):
    expect.that(found is not None, "read returned None: is a `return` missing?")
    expect.equal(sorted(found), KEYS, "the keys of what read returns")
    for key, value in found.items():
        kind = type(value).__name__
        is_number = isinstance(value, (int, float))
        expect.that(is_number, f"{key} is a {kind}, expected a number")
    images = images_of(everything)
    own = mean_of(local) if local else None
    means = [loss.item() for loss, _ in everything]
    whole, ranks = mean_of(everything), dist.get_world_size()
    losses = {
        "the batches' means, added up and divided by the number of images": (
            sum(means) / images
        ),
        "the sum of the batches' means": sum(means),
        "the mean of the batches' means: a batch with more images counts more": (
            sum(means) / len(means)
        ),
        "the sum over all images, not their mean": whole * images,
        "the sum over all images, divided by the number of batches": (
            whole * images / len(means)
        ),
        "the mean, divided once more by the number of ranks": whole / ranks,
        "the mean loss of the last rank's last batch": means[-1],
    }
    if local:
        losses["the sum over all ranks' images, divided by this rank's images"] = (
            whole * images / images_of(local)
        )
    of_images = {
        "the images of this rank": images_of(local),
        "the number of batches of all ranks": len(everything),
        "the number of batches of this rank": len(local),
        "the mean of the ranks' numbers": images / ranks,
        "the images of all ranks, once for each rank": images * ranks,
        "the images of this rank, times the number of ranks": images_of(local) * ranks,
    }
    alike = [words for words, value in of_images.items() if value == found["images"]]
    if found["images"] != images and len(alike) == 1:
        told = f"is {alike[0]}, {found['images']:g}, expected {images}"
        expect.that(False, f"images {label}: {told}")
    expect.equal(found["images"], images, f"images {label}")
    expect.close(
        found["loss"],
        mean_of(everything),
        f"loss {label}",
        local=own,
        mistaken=losses | dict(mistaken),
    )
    per_s = images / slowest_s
    by_all = "all images divided by the seconds of all ranks"
    others = {by_all: per_s / dist.get_world_size(), **dict(mistaken)}
    if own_alone is not False:
        only = "only this rank's images, divided by the seconds of the slowest rank"
        others = {only: images_of(local) / slowest_s, **others}
    what = f"images_per_s {label}"
    expect.close(found["images_per_s"], per_s, what, mistaken=others)


@pytest.mark.ranks(3, 4)
def test_equal_batches(exercise, rank, world_size, seed):
    """With equal batches on all ranks: the mean over all images."""
    by_rank = [batches(seed + r, [4, 4]) for r in range(world_size)]
    meter = exercise.Meter()
    fill(meter, by_rank[rank])
    found = meter.read(2.0)
    of_own = divides_own_images(exercise, rank, world_size, seed)
    what = "of equal batches"
    compare(found, flat(by_rank), 2.0, by_rank[rank], what, own_alone=of_own)
    second = exercise.Meter()
    fill(second, by_rank[rank])
    what = "of a second meter, which counts for itself"
    compare(second.read(1.0), flat(by_rank), 1.0, by_rank[rank], what)


@pytest.mark.ranks(3, 4)
def test_unequal_batches(exercise, rank, world_size, seed):
    """With unequal batches, every image counts the same, on whichever rank it is."""
    # no rank has as many images as the ranks have in the mean
    by_rank = [batches(seed + r, [8, 8, r * r + 1]) for r in range(world_size)]
    meter = exercise.Meter()
    fill(meter, by_rank[rank])
    found = meter.read(0.5)
    means = sum(mean_of(some) for some in by_rank) / world_size
    mistaken = {"the mean of the ranks' means": means}
    what = "of unequal batches"
    compare(found, flat(by_rank), 0.5, by_rank[rank], what, mistaken)


@pytest.mark.ranks(3, 4)
def test_slowest_rank(exercise, rank, world_size, seed):
    """The throughput is all images divided by the seconds of the slowest rank."""
    by_rank = [batches(seed + r, [5, 5]) for r in range(world_size)]
    meter = exercise.Meter()
    fill(meter, by_rank[rank])
    seconds = [1.5, 4.0, 2.0, 3.0][:world_size]
    found = meter.read(seconds[rank])
    images = images_of(flat(by_rank))
    mean = sum(seconds) / world_size
    mistaken = {
        "all images divided by the seconds of this rank": images / seconds[rank],
        "all images divided by the seconds of the fastest rank": images / min(seconds),
        "all images divided by the mean of the seconds": images / mean,
        "the sum of the ranks' own images per second": sum(10 / s for s in seconds),
    }
    if rank == 1:  # the slowest, whose own seconds are right
        del mistaken["all images divided by the seconds of this rank"]
    what = "when rank 1 is slow"
    compare(found, flat(by_rank), 4.0, by_rank[rank], what, mistaken)


@pytest.mark.ranks(3)
def test_ranks_meet_only_in_read(exercise, rank, world_size, seed, ledger):
    """update sends nothing; read needs no more than two collectives."""
    by_rank = [batches(seed + r, [4, 4, 2]) for r in range(world_size)]
    meter = exercise.Meter()
    fill(meter, by_rank[rank])
    by_update = len(ledger.rows)
    found = meter.read(1.0)
    by_read = len(ledger.rows) - by_update
    compare(found, flat(by_rank), 1.0, by_rank[rank], "of three batches")
    expect.right_way(
        by_update == 0, f"update called torch.distributed {by_update} times"
    )
    expect.right_way(
        by_read <= 2, f"read called torch.distributed {by_read} times: two are enough"
    )


@pytest.mark.ranks(3)
def test_a_rank_without_batches(exercise, rank, world_size, seed):
    """A rank that had no batch calls read, too, and doesn't change the mean."""
    for empty in (1, 0):
        by_rank = [batches(seed + r, [2 + r, 7]) for r in range(world_size)]
        by_rank[empty] = []
        meter = exercise.Meter()
        fill(meter, by_rank[rank])
        what = f"when rank {empty} had no batch"
        compare(meter.read(1.0), flat(by_rank), 1.0, by_rank[rank], what)


@pytest.mark.ranks(3, 4)
def test_read_in_the_middle(exercise, rank, world_size, seed):
    """If you read in the middle and at the end, everything is counted once."""
    early = [batches(seed + r, [4, r + 1]) for r in range(world_size)]
    late = [batches(seed + 50 + r, [6]) for r in range(world_size)]
    meter = exercise.Meter()
    fill(meter, early[rank])
    compare(meter.read(1.0), flat(early), 1.0, early[rank], "in the middle")
    fill(meter, late[rank])
    everything = flat(early) + flat(late)
    mine = early[rank] + late[rank]
    compare(meter.read(3.0), everything, 3.0, mine, "at the end, read before")


@pytest.mark.ranks(3)
def test_update_keeps_no_graph(exercise, rank, world_size, seed):
    """A batch's graph is freed; otherwise the memory of all batches adds up."""
    meter = exercise.Meter()
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    activation = weight * 2.0
    meter.update(activation.square(), 4)
    alive = weakref.ref(activation)
    del activation
    for _ in range(20):  # whoever watches this rank may be looking at update's frame
        gc.collect()
        if alive() is None:
            break
        time.sleep(0.05)
    kept = alive() is not None or any(
        torch.is_tensor(value) and value.requires_grad for value in vars(meter).values()
    )
    expect.close(meter.read(1.0)["loss"], 4.0, "the loss")
    expect.right_way(
        not kept,
        "the graph of the batch is still there after update: detach the loss, or all "
        "activations of an epoch stay in memory",
    )
