"""Checks of exercises/16_replicas.py: the mean over all ranks, and what nodes send."""

import time

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh

from workshop.grader import expect

expect.nothing_is_averaged()  # wrong means have names of their own below

GRIDS = {4: (2, 2), 6: (2, 3)}
AXES = ("replica", "data")


def drawn(seed, world_size, length):
    """The gradients of all ranks, the same on all ranks: float64, [ranks, P]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(world_size, length, generator=generator, dtype=torch.float64)


def shard(whole, shards, place):
    """The shard at ``place``, filled up with zeros."""
    size = -(-len(whole) // shards)
    padded = torch.zeros(shards * size, dtype=whole.dtype)
    padded[: len(whole)] = whole
    return padded[place * size : (place + 1) * size]


def mistakes(gradients, grid, rank, right):
    """Wrong results by their names, without those that aren't wrong here."""
    replicas, shards = grid
    replica, place = divmod(rank, shards)
    of_node = gradients[replica * shards : (replica + 1) * shards]
    of_column = gradients[place::shards]
    world_size, size = len(gradients), len(right)
    total = gradients.sum(0)
    mean = torch.cat([shard(total, shards, each) for each in range(shards)])
    mean /= world_size
    in_front = mean.roll(len(mean) - len(total))  # the zeros are at the end of mean
    names = {
        "the mean over this node alone: the other nodes have other samples": shard(
            of_node.mean(0), shards, place
        ),
        "the sum over this node alone": shard(of_node.sum(0), shards, place),
        "the sum over this node alone, divided by all ranks": (
            shard(of_node.sum(0), shards, place) / world_size
        ),
        "the sum over the replica axis alone, divided by all ranks": (
            shard(of_column.sum(0), shards, place) / world_size
        ),
        "the mean over the replica axis alone: the ranks of this node have other "
        "samples": shard(of_column.mean(0), shards, place),
        "the sum over all ranks, not the mean": shard(total, shards, place),
        "the sum over all ranks, divided by the ranks of a node only": (
            shard(total, shards, place) / shards
        ),
        "the sum over all ranks, divided by the number of replicas only": (
            shard(total, shards, place) / replicas
        ),
        "the mean, of the shard that belongs to the place on the replica axis": (
            shard(total, shards, replica % shards) / world_size
        ),
        "this rank's own gradient": shard(gradients[rank], shards, place),
        "the sum of all shards of the mean: once a shard is left on each rank, reduce "
        "it over the replica axis only": mean.view(shards, size).sum(0),
        "as if the zeros stood in front: append them": in_front[place * size :][:size],
        f"every number whose index is {place} modulo {shards}: a shard is a block of "
        "numbers that follow each other": mean[place::shards],
    }
    return {
        name: value for name, value in names.items() if not torch.equal(value, right)
    }


def too_short(found, whole, right, grid, rank):
    """What is said of a shard with fewer numbers than each shard has."""
    length, (_, shards) = len(found), grid
    place, size = rank % shards, len(right)
    mistaken = {
        "the remainder was dropped: append zeros before you cut": (
            whole[place * (len(whole) // shards) :][:length]
        ),
        "the numbers were cut without zeros: append them before you cut": (
            whole.tensor_split(shards)[place]
        ),
        "the zeros at its end are missing": whole[place * size :][:length],
    }
    said = f"has {length} numbers, where each shard has {size}"
    for words, value in mistaken.items():
        if value.shape == found.shape and torch.allclose(value, found.to(value)):
            return f"{said}: {words}"
    return f"{said}, zeros at the end included"


def compare(exercise, rank, world_size, seed, length):
    grid = GRIDS[world_size]
    mesh = init_device_mesh("cpu", grid, mesh_dim_names=AXES)
    gradients = drawn(seed, world_size, length)
    gradient = gradients[rank].clone()
    if rank == 2:
        time.sleep(0.05)
    found = exercise.shard_of_mean(gradient, mesh)
    right = shard(gradients.mean(0), grid[1], rank % grid[1])
    names = mistakes(gradients, grid, rank, right)
    what = f"the shard of the mean, of {length} numbers on a grid {grid}"
    whole = gradients.mean(0)
    expect.that(
        not torch.is_tensor(found)
        or found.shape != whole.shape
        or found.shape == right.shape,
        f"{what}: has {length} numbers, as the whole gradient: keep this rank's shard",
    )
    vector = torch.is_tensor(found) and found.dim() == 1
    if vector and len(found) < len(right):
        expect.that(False, f"{what}: {too_short(found, whole, right, grid, rank)}")
    expect.close(found, right, what, mistaken=names)
    expect.unchanged(gradient, gradients[rank], "the gradient that was passed in")


@pytest.mark.ranks(6, 4)  # first where the grid isn't square
def test_a_multiple_of_the_shards(exercise, rank, world_size, seed):
    """Each rank gets its shard of the mean over all ranks, 12 numbers."""
    compare(exercise, rank, world_size, seed, 12)


@pytest.mark.ranks(6, 4)  # first where the grid isn't square
def test_the_last_shard_is_filled_up(exercise, rank, world_size, seed):
    """The last shard ends with zeros: of 13 numbers, and of 1."""
    compare(exercise, rank, world_size, seed, 13)
    compare(exercise, rank, world_size, seed + 1, 1)


@pytest.mark.ranks(4)
def test_only_shards_cross_nodes(exercise, rank, world_size, seed, ledger):
    """Between nodes, a rank sends a shard of the gradient and no more."""
    length, shards = 4000, GRIDS[world_size][1]
    compare(exercise, rank, world_size, seed, length)
    node = rank // shards
    for row in ledger.rows:
        group = row.group or range(world_size)
        crosses = any(other // shards != node for other in group)
        expect.right_way(
            row.line is None or not crosses or row.elements <= length // shards,
            f"line {row.line} passes {row.elements} numbers to {row.op} with another "
            f"node, where a shard has {length // shards}: reduce within the node first",
        )
