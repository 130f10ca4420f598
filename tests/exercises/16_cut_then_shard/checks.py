"""Checks of exercises/16_cut_then_shard.py: against the whole weight, on two grids."""

import time

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh

from workshop.grader import expect

expect.nothing_is_averaged()  # wrong means have names of their own below

GRIDS = {4: (2, 2), 6: (2, 3)}
SHAPE = (12, 18)  # both are multiples of 6
KINDS = {1: "a layer cut by rows", 0: "a layer cut by columns"}


def grid(world_size):
    return init_device_mesh("cpu", GRIDS[world_size], mesh_dim_names=("data", "tensor"))


def drawn(seed, *shape):
    """The same numbers on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def part(tensor, dim, ranks, place):
    return tensor.chunk(ranks, dim)[place]


class Place:
    """This rank's place on the grid, and which part of a weight is whose."""

    def __init__(self, mesh, rank):
        self.d, self.t = mesh.size(0), mesh.size(1)
        self.data, self.tensor = divmod(rank, self.t)

    def cut(self, weight, dim):
        return part(weight, dim, self.t, self.tensor)

    def shard(self, cut):
        return part(cut, 0, self.d, self.data)


def compare(found, right, what, names):
    """As ``expect.close``, which names a mistake; here also one of another shape."""
    mistaken = {}
    for name, value in names.items():
        if value.shape == right.shape:
            if not torch.equal(value, right):
                mistaken[name] = value
        elif torch.is_tensor(found) and found.shape == value.shape:
            expect.that(not torch.allclose(found, value), f"{what}: is {name}")
    expect.close(found, right, what, mistaken=mistaken)


@pytest.mark.ranks(4, 6)
def test_the_shard_of_a_cut(exercise, rank, world_size, seed):
    """Each rank keeps some rows of its cut, of a layer cut by columns or by rows."""
    mesh = grid(world_size)
    place = Place(mesh, rank)
    weight = drawn(seed, *SHAPE)
    for dim, kind in KINDS.items():
        found = exercise.own_shard(weight, dim, mesh)
        right = place.shard(place.cut(weight, dim))
        other = 1 - dim
        swapped = part(weight, dim, place.d, place.data)
        names = {
            "sharded first, then cut. FSDP gathers first in a step, so the shards must "
            "be those of a cut": place.cut(place.shard(weight), dim),
            "the cut, not sharded": place.cut(weight, dim),
            "the shard of the whole weight, not cut": place.shard(weight),
            f"cut along tensor dim {other}": place.shard(place.cut(weight, other)),
            "the data axis where the tensor axis is meant": (
                part(swapped, 0, place.t, place.tensor)
            ),
            "sharded along tensor dim 1": part(
                place.cut(weight, dim), 1, place.d, place.data
            ),
            "the ranks one after the other, as if the grid had one axis": (
                part(weight, dim, world_size, rank)
            ),
        }
        what = f"the shard of {kind}"
        compare(found, right, what, names)
        expect.own_memory(found, weight, f"the shard of {kind}")


@pytest.mark.ranks(4, 6)
def test_the_cut_is_gathered(exercise, rank, world_size, seed, ledger):
    """gather_cut puts this rank's cut together, from the ranks that share it."""
    mesh = grid(world_size)
    place = Place(mesh, rank)
    weight = drawn(seed, *SHAPE)
    for dim, kind in KINDS.items():
        cut = place.cut(weight, dim)
        shard = place.shard(cut).clone()
        if rank == 1:
            time.sleep(0.05)
        found = exercise.gather_cut(shard, mesh)
        cuts = [part(weight, dim, place.t, tensor) for tensor in range(place.t)]
        neighbors = [place.shard(each) for each in cuts]
        names = {
            "the shards of the tensor group, which are rows of other cuts": (
                torch.cat(neighbors)
            ),
            "the shards of all ranks": torch.cat(
                [
                    part(each, 0, place.d, data)
                    for data in range(place.d)
                    for each in cuts
                ]
            ),
            "the shards side by side: they are rows": torch.cat(
                cut.chunk(place.d, 0), dim=1
            ),
            "this rank's shard, not gathered": shard,
            "the whole weight: a layer that is cut computes with its cut": weight,
        }
        what = f"what {kind} computes with"
        compare(found, cut, what, names)
        expect.unchanged(shard, place.shard(cut), "the shard that was gathered")
    asked = [row.group or range(world_size) for row in ledger.rows if row.line]
    most = max(map(len, asked), default=place.d)
    expect.right_way(
        most <= place.d,
        f"a rank gathered from {most} ranks, where {place.d} share its cut: the others "
        "sent it what it doesn't need",
    )


@pytest.mark.ranks(4, 6)
def test_gradients_are_averaged_over_data(exercise, rank, world_size, seed):
    """A shard's gradient is the mean over the data group, and not the tensor group."""
    mesh = grid(world_size)
    place = Place(mesh, rank)
    by_data = drawn(seed, place.d, *SHAPE)  # of the whole weight, of each data rank
    for dim, kind in KINDS.items():
        gradients = [place.cut(each, dim) for each in by_data]
        gradient = gradients[place.data].contiguous().clone()
        if rank == 2:
            time.sleep(0.05)
        found = exercise.reduce_gradient(gradient.clone(), mesh)
        mean = sum(gradients) / place.d
        right = place.shard(mean)
        own = by_data[place.data]
        of_neighbors = sum(own.chunk(place.t, dim))
        of_all = sum(by_data.sum(0).chunk(place.t, dim))
        names = {
            "this rank's own gradient: other data ranks have other samples": (
                place.shard(gradient)
            ),
            "the sum over the data group: each loss is a mean, so average": (
                right * place.d
            ),
            "the mean over all ranks. Other tensor ranks have gradients of other "
            "numbers": place.shard(of_all) / world_size,
            "the sum over all ranks": place.shard(of_all),
            "the mean over the tensor group, whose ranks have other numbers": (
                place.shard(of_neighbors) / place.t
            ),
            "the sum over the tensor group, whose ranks have other numbers": (
                place.shard(of_neighbors)
            ),
            "the mean, and of the whole cut: keep the rows of the shard": mean,
            "the sum over the data group, divided by the number of all ranks": (
                right * place.d / world_size
            ),
            "the rows that belong to the tensor place, not the data place": (
                part(mean, 0, place.d, place.tensor % place.d)
            ),
        }
        what = f"the gradient of the shard of {kind}"
        compare(found, right, what, names)
