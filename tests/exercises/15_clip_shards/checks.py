"""Checks of exercises/15_clip_shards.py."""

import time

import pytest
import torch
import torch.distributed as dist
from torch import nn

from workshop.grader import expect

LAYERS = (1, 4, 3)  # numbers of a shard of each layer


def gradients_of(seed, world_size):
    """For each layer [W, W n]: what each rank has computed; very unequal."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.arange(1, world_size + 1, dtype=torch.float64).unsqueeze(1)
    return [
        sizes * torch.randn(world_size, world_size * n, generator=generator).double()
        for n in LAYERS
    ]


def reference(everybody, max_norm):
    """([W n] for each layer, norm): averaged, then clipped by PyTorch."""
    parameters = [nn.Parameter(torch.zeros_like(layer[0])) for layer in everybody]
    for parameter, layer in zip(parameters, everybody, strict=True):
        parameter.grad = layer.mean(0)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters], norm


def whole(shards, world_size):
    """The shards of all ranks, joined."""
    joined = []
    for shard in shards:
        parts = [torch.empty_like(shard) for _ in range(world_size)]
        dist.all_gather(parts, shard.contiguous())
        joined.append(torch.cat(parts))
    return joined


def scale_of(norm, max_norm):
    return (max_norm / (norm + 1e-6)).clamp(max=1)


def mistaken_shards(everybody, rank, max_norm):
    """For each layer, what :func:`expect.close` calls a shard of it."""
    world_size, norm = len(everybody[0]), reference(everybody, max_norm)[1]
    norms = torch.cat(everybody, 1).norm(dim=1, keepdim=True)  # of each rank's gradient
    early = [layer * scale_of(norms, max_norm) for layer in everybody]
    means = [layer.mean(0).view(world_size, -1)[rank] for layer in everybody]
    own = torch.cat(means).norm()
    for mean, layer, clipped in zip(means, everybody, early, strict=True):
        yield {
            "scaled by max_norm / norm, without the 1e-6": (
                mean * max_norm / norm.clamp(min=1e-6)
            ),
            "not scaled": mean,
            "scaled by the norm of this rank's own shards": mean
            * scale_of(own, max_norm),
            "scaled by the norm of this layer alone": (
                mean * scale_of(layer.mean(0).norm(), max_norm)
            ),
            "clipped on each rank by its own norm, before the mean": (
                clipped.mean(0).view(world_size, -1)[rank]
            ),
            "clipped number by number, as by clip_grad_value_: scale all by the "
            "norm": mean.clamp(-max_norm, max_norm),
            "scaled by the square of the norm": mean
            * scale_of(norm.square(), max_norm),
            "scaled to max_norm even where the gradient is shorter": (
                mean * max_norm / (norm + 1e-6)
            ),
        } | other_parts(layer.mean(0) * scale_of(norm, max_norm), rank, world_size)


def other_parts(whole, rank, world_size):
    """What isn't this rank's part of a gradient, and has its shape."""
    parts = whole.view(world_size, -1)
    others = {
        f"the shard of rank {other}": parts[other]
        for other in range(world_size)
        if other != rank
    }
    words = "every N-th number, from this rank's on: a shard is in one piece"
    return others | {words: whole[rank::world_size]}


def mistaken_norms(everybody, rank, max_norm):
    """What :func:`expect.close` calls a norm."""
    world_size, norm = len(everybody[0]), reference(everybody, max_norm)[1]
    means = torch.cat([layer.mean(0).view(world_size, -1) for layer in everybody], 1)
    norms = means.norm(dim=1)  # of each rank's shards
    return {
        "the norm of this rank's own shards": norms[rank],
        "the largest of the norms of all ranks' shards": norms.max(),
        "the sum of the norms of all ranks' shards": norms.sum(),
        "the root of the mean of all ranks' squares, not of their sum": (
            norms.square().mean().sqrt()
        ),
        "the norm after the scaling": norm * max_norm / (norm + 1e-6),
        "the square of the norm, without the root": norm.square(),
        "the norm of this rank's own gradient, before the mean": torch.cat(
            [layer[rank] for layer in everybody]
        ).norm(),
        "the norm of the last layer alone": everybody[-1].mean(0).norm(),
    }


def compare(exercise, rank, world_size, seed, max_norm, label, size=1.0):
    everybody = [size * layer for layer in gradients_of(seed, world_size)]
    mine = [layer[rank].clone() for layer in everybody]
    if rank == 1:
        time.sleep(0.05)
    shards, norm = exercise.average_and_clip(mine, max_norm)
    what = "the gradients that were given, afterwards"
    expect.that(len(mine) == len(LAYERS), f"of {what}, {len(mine)} are in the list")
    for given, layer in zip(mine, everybody, strict=True):
        expect.unchanged(given, layer[rank], what)
    expected, expected_norm = reference(everybody, max_norm)
    expect.equal(len(shards), len(LAYERS), "number of shards")
    every_mistake = mistaken_shards(everybody, rank, max_norm)
    for n, shard, value, mistaken in zip(
        LAYERS, shards, expected, every_mistake, strict=True
    ):
        own = value.view(world_size, n)[rank]
        expect.equal(tuple(shard.shape), (n,), "the shape of a shard")
        numbers = "1 number" if n == 1 else f"{n} numbers"
        expect.close(shard, own, f"a shard of {numbers} {label}", mistaken=mistaken)
    mistaken = mistaken_norms(everybody, rank, max_norm)
    expect.close(norm, expected_norm, f"the norm {label}", mistaken=mistaken)


def numbers_of(row):
    """How many numbers a call sends; a pickled one has some twenty bytes."""
    return 1 if row.dtypes == ["uint8"] and row.numel < 64 else row.numel


@pytest.mark.ranks(3, 4)
def test_short_gradient_is_only_averaged(exercise, rank, world_size, seed):
    """A gradient shorter than max_norm is averaged, and not scaled at all."""
    compare(exercise, rank, world_size, seed, 1e6, "of a gradient that is not clipped")
    compare(exercise, rank, world_size, seed, 0.5, "of zeros", size=0.0)


@pytest.mark.ranks(3, 4)
def test_long_gradient_is_scaled_as_a_whole(exercise, rank, world_size, seed):
    """The joined shards are the mean gradient, clipped by its global norm."""
    _, norm = reference(gradients_of(seed, world_size), 1.0)
    for max_norm in (0.5, 2.0, 0.95 * norm.item()):  # the last: longer than any shard
        label = f"clipped to {max_norm:.3g}"
        compare(exercise, rank, world_size, seed, max_norm, label)


@pytest.mark.ranks(3)
def test_gradients_of_a_smaller_dtype(exercise, rank, world_size, seed):
    """Gradients in float32 are averaged and clipped in float32."""
    everybody = [layer.float() for layer in gradients_of(seed, world_size)]
    expected, expected_norm = reference(everybody, 0.5)
    shards, norm = exercise.average_and_clip([x[rank].clone() for x in everybody], 0.5)
    for n, shard, value in zip(LAYERS, shards, expected, strict=True):
        own = value.view(world_size, n)[rank]
        expect.close(shard, own, "a shard in float32", atol=1e-5, rtol=1e-5)
    expected_norm = float(expected_norm)  # of any dtype
    expect.close(norm, expected_norm, "the norm in float32", atol=1e-5, rtol=1e-5)


@pytest.mark.ranks(4)
def test_every_rank_knows_the_norm(exercise, rank, world_size, seed):
    """The norm is the same on all ranks, also where a shard is zero."""
    everybody = gradients_of(seed, world_size)
    for layer in everybody:
        layer.view(world_size, world_size, -1)[:, 2] = 0  # all of rank 2's shard
    mine = [layer[rank].clone() for layer in everybody]
    shards, norm = exercise.average_and_clip(mine, 0.5)
    expected, expected_norm = reference(everybody, 0.5)
    expect.close(norm, expected_norm, "the norm")
    for found, value in zip(whole(shards, world_size), expected, strict=True):
        expect.close(found, value, "a layer's gradient, joined from all shards")


@pytest.mark.ranks(4)
def test_only_numbers_travel_for_the_norm(exercise, rank, world_size, seed, ledger):
    """One reduce-scatter for each layer, and a few numbers for the norm."""
    everybody = gradients_of(seed, world_size)
    ledger.clear()
    shards, _ = exercise.average_and_clip([x[rank].clone() for x in everybody], 0.5)
    rows = list(ledger.rows)
    expected, _ = reference(everybody, 0.5)
    for found, value in zip(whole(shards, world_size), expected, strict=True):
        expect.close(found, value, "a layer's gradient, joined from all shards")
    kinds = (
        "all_reduce",
        "all_gather",
        "all_gather_into_tensor",
        "broadcast",
        "gather",
    )
    used = sorted({row.op for row in rows if row.op in kinds})
    sent = sum(numbers_of(row) for row in rows if row.op in kinds)
    expect.right_way(
        sent <= world_size,
        f"{sent} numbers went through {' and '.join(used)}: a reduce-scatter gives a "
        "rank just its shard, and the norm needs one number from each rank",
    )
