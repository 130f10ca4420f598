"""Checks of exercises/16_mesh_groups.py."""

import ast
import math
import numbers

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from grader import expect

SHAPES = [(2, 3), (3, 2), (4,), (2, 3, 4), (3, 1, 2), (1, 5), (2, 2, 2, 3)]
ON_RANKS = {4: [(2, 2), (4, 1), (1, 4)], 6: [(2, 3), (3, 2), (3, 1, 2)]}


def laid_out(shape):
    return torch.arange(math.prod(shape)).view(shape)


def rows_along(shape, axis):
    return laid_out(shape).movedim(axis, -1).reshape(-1, shape[axis]).tolist()


def names_in(path):
    """Every name that a file of Python uses, imports or looks up."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8-sig"))):
        names = (getattr(node, key, None) for key in ("id", "attr", "name"))
        found.update(str(name).rpartition(".")[2] for name in names)
    return found


def check_whole_numbers(found, what):
    whole = all(isinstance(number, numbers.Integral) for number in found)
    expect.that(whole, f"{what}: ranks and places are whole numbers, not {found}")


@pytest.mark.ranks(1)
def test_coordinates(exercise, seed):
    """Every rank's place along each axis, on grids of one to four axes."""
    for shape in SHAPES:
        for place in torch.cartesian_prod(*map(torch.arange, shape)).view(
            -1, len(shape)
        ):
            rank = int(laid_out(shape)[tuple(place)])
            found = exercise.coordinates(rank, shape)
            what = f"the coordinates of rank {rank} on a grid {shape}"
            expect.equal(found, tuple(place.tolist()), what)
            check_whole_numbers(found, what)


@pytest.mark.ranks(1)
def test_group_ranks(exercise, seed):
    """The ranks of every row along every axis, on grids of one to four axes."""
    for shape in SHAPES:
        for axis in range(len(shape)):
            for row in rows_along(shape, axis):
                for rank in row:
                    found = exercise.group_ranks(rank, shape, axis)
                    what = f"the group of rank {rank} along axis {axis} of {shape}"
                    expect.equal(list(found), row, what)
                    check_whole_numbers(found, what)


@pytest.mark.ranks(4, 6)
def test_groups_are_those_of_the_mesh(exercise, exercise_path, rank, world_size, seed):
    """make_groups gives each rank the groups that init_device_mesh gives it."""
    named = names_in(exercise_path)
    asked = [name for name in ("init_device_mesh", "DeviceMesh") if name in named]
    expect.right_way(
        not asked,
        f"your file uses {', '.join(asked)}: make the groups without asking the mesh",
    )
    for shape in ON_RANKS[world_size]:
        groups = exercise.make_groups(shape)
        expect.equal(len(groups), len(shape), f"the number of groups for {shape}")
        names = tuple(f"axis{axis}" for axis in range(len(shape)))
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
        for axis, group in enumerate(groups):
            outside = group == dist.GroupMember.NON_GROUP_MEMBER
            why = "what new_group returns on a rank that is no member"
            expect.that(
                isinstance(group, dist.ProcessGroup),
                f"the group along axis {axis} of {shape} is {group!r}, "
                f"{why if outside else 'and no process group: new_group makes one'}",
            )
            ranks = dist.get_process_group_ranks(group)
            theirs = dist.get_process_group_ranks(mesh.get_group(axis))
            expect.equal(ranks, theirs, f"the ranks of the group, axis {axis}, {shape}")


@pytest.mark.ranks(4, 6)
def test_sums_over_the_groups(exercise, rank, world_size, seed):
    """A sum over each group is that over the row of the grid."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(world_size, generator=generator, dtype=torch.float64)
    for shape in ON_RANKS[world_size]:
        for axis, group in enumerate(exercise.make_groups(shape)):
            mine = values[rank].clone()
            dist.all_reduce(mine, group=group)
            sums = values.view(shape).sum(axis, keepdim=True).expand(shape)
            what = f"the sum along axis {axis} of {shape}"
            expect.close(mine, sums.flatten()[rank], what, local=values[rank])
