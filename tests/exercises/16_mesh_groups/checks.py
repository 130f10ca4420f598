"""Checks of exercises/16_mesh_groups.py."""

import ast
import contextlib
import math
import numbers
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from workshop.grader import expect, variants

SHAPES = [(2, 3), (3, 2), (4,), (2, 3, 4), (3, 1, 2), (1, 5), (2, 2, 2, 3)]
ON_RANKS = {4: [(2, 2), (4, 1), (1, 4)], 6: [(2, 3), (3, 2), (3, 1, 2)]}


def places_of(rank, shape, *, fastest="last", first=0, wraps=True, apart_of=None):
    """A rank's coordinates; the keywords are what goes wrong."""
    found = []
    for axis, size in enumerate(shape):
        apart = math.prod(shape[:axis] if fastest == "first" else shape[axis + 1 :])
        apart = apart if apart_of is None else apart_of(shape, axis)
        place = rank // apart + first
        found.append(place % size if wraps else place)
    return tuple(found[::-1] if fastest == "last, turned round" else found)


MISTAKEN_PLACES = {
    "the first axis varied fastest, not the last": {"fastest": "first"},
    "the last axis came first in the result": {"fastest": "last, turned round"},
    "the axis's own size were one of those to divide by": {
        "apart_of": lambda shape, axis: math.prod(shape[axis:])
    },
    "only the size of the next axis were divided by, not of all that follow": {
        "apart_of": lambda shape, axis: math.prod(shape[axis + 1 : axis + 2])
    },
    "an axis never began again at 0": {"wraps": False},
    "nothing were divided": {"apart_of": lambda shape, axis: 1},
}


def row_of(rank, shape, axis, *, apart_of=None, begin="at place 0", members="all"):
    """The ranks of a group; the keywords are what goes wrong."""
    place, apart = places_of(rank, shape)[axis], math.prod(shape[axis + 1 :])
    steps = apart if apart_of is None else apart_of(shape, axis)
    begins = {
        "at place 0": rank - place * steps,
        "at the right rank": rank - place * apart,
        "at itself": rank,
        "at rank 0": 0,
    }
    row = [begins[begin] + step * steps for step in range(shape[axis])]
    wrapped = [(rank + step * steps) % math.prod(shape) for step in range(shape[axis])]
    others = [other for other in row if other != rank]
    return {
        "all": row,
        "others": others,
        "itself first": [rank, *others],
        "wrapped": wrapped,
        "all of the grid": list(range(math.prod(shape))),
        "turned round": row[::-1],
    }[members]


MISTAKEN_ROWS = {
    "neighbors were as far apart as the axes before it are large, not those after it": {
        "apart_of": lambda shape, axis: math.prod(shape[:axis])
    },
    "the size of the axis itself counted in how far apart neighbors are": {
        "apart_of": lambda shape, axis: math.prod(shape[axis:])
    },
    "only the next axis counted in how far apart neighbors are, not all that follow": {
        "apart_of": lambda shape, axis: math.prod(shape[axis + 1 : axis + 2])
    },
    "only the last axis counted in how far apart neighbors are": {
        "apart_of": lambda shape, axis: shape[-1]
    },
    "the ranks of a group were always next to each other": {
        "apart_of": lambda shape, axis: 1
    },
    "the ranks of a group were next to each other, from its first rank on": {
        "apart_of": lambda shape, axis: 1,
        "begin": "at the right rank",
    },
    "the rank itself had place 0": {"begin": "at itself"},
    "the rank itself had place 0, and rank 0 followed the last rank of the grid": {
        "members": "wrapped"
    },
    "rank 0 were in each group": {"begin": "at rank 0"},
    "the rank itself didn't belong to its group": {"members": "others"},
    "the rank itself came first": {"members": "itself first"},
    "the last place came first": {"members": "turned round"},
    "all ranks of the grid were one group": {"members": "all of the grid"},
}


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


def check_row(found, rank, shape, axis, what, cause=""):
    """Expect the rank's row along ``axis``; that of another axis is called so."""
    rows = {
        other: row
        for other in range(len(shape))
        for row in rows_along(shape, other)
        if rank in row
    }
    confused = [other for other, row in rows.items() if found == row]
    expect.that(
        found == rows[axis] or not confused,
        f"{what}: is {found}, the group along axis {confused[0] if confused else ''}; "
        f"expected {rows[axis]}",
    )
    expect.equal(found, rows[axis], what, cause=cause)


def check_whole_numbers(found, what):
    whole = all(isinstance(number, numbers.Integral) for number in found)
    expect.that(whole, f"{what}: ranks and places are whole numbers, not {found}")


class CallsInStep:
    """``with CallsInStep(...)``: ``new_group`` first compares what the ranks ask for.

    Where they ask for different groups, it's chance whether the ranks wait in
    ``new_group`` or, connected to a wrong partner, in the next collective.
    """

    def __init__(self, shape):
        self.call, self.shape, self.count = dist.new_group, shape, 0
        self.replaced = contextlib.ExitStack()

    def __enter__(self):
        for place in (dist, dist.distributed_c10d):
            changed = mock.patch.object(place, "new_group", self.new_group)
            self.replaced.enter_context(changed)

    def __exit__(self, kind, *error):
        self.replaced.close()
        if kind is None:
            self.compare("no such call")

    def new_group(self, ranks=None, *args, **kwargs):
        if not kwargs.get("use_local_synchronization"):  # which only members call
            members = range(dist.get_world_size()) if ranks is None else ranks
            with contextlib.suppress(TypeError, ValueError):  # new_group says it better
                members = sorted(map(int, members))
            self.compare(f"new_group({members})")
        return self.call(ranks, *args, **kwargs)

    def compare(self, asked):
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, asked)
        self.count += 1
        if len(set(everyone)) > 1:
            what = f"call no. {self.count} of new_group in make_groups({self.shape})"
            raise expect.Mismatch(what, asked, "new_group", way=True)


def check_members_hold_the_same(group, ranks, where):
    """Every rank calls this. Two groups of the same ranks are still two."""
    names = [None] * dist.get_world_size()
    dist.all_gather_object(names, group.group_name)
    expect.that(
        len({names[rank] for rank in ranks}) == 1,
        f"the ranks {ranks} along {where} each keep a group of another call of "
        "new_group: call it once for each row, and keep what that call returned",
    )


@pytest.mark.ranks(1)
def test_coordinates(exercise, seed):
    """Every rank's place along each axis, on grids of one to four axes."""
    cases = [(rank, shape) for shape in SHAPES for rank in range(math.prod(shape))]
    asked = exercise.coordinates, cases, places_of, MISTAKEN_PLACES
    cause = variants.cause_in(*asked)
    for shape in SHAPES:
        for place in torch.cartesian_prod(*map(torch.arange, shape)).view(
            -1, len(shape)
        ):
            rank = int(laid_out(shape)[tuple(place)])
            found = exercise.coordinates(rank, shape)
            what = f"the coordinates of rank {rank} on a grid {shape}"
            expect.equal(found, tuple(place.tolist()), what, cause=cause)
            check_whole_numbers(found, what)


@pytest.mark.ranks(1)
def test_group_ranks(exercise, seed):
    """The ranks of every row along every axis, on grids of one to four axes."""
    cases = [
        (rank, shape, axis)
        for shape in SHAPES
        for axis in range(len(shape))
        for rank in range(math.prod(shape))
    ]
    asked = exercise.group_ranks, cases, row_of, MISTAKEN_ROWS
    cause = variants.cause_in(*asked)
    for shape in SHAPES:
        for axis in range(len(shape)):
            for row in rows_along(shape, axis):
                for rank in row:
                    found = exercise.group_ranks(rank, shape, axis)
                    what = f"the group of rank {rank} along axis {axis} of {shape}"
                    check_row(list(found), rank, shape, axis, what, cause)
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
        with CallsInStep(shape):
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
            what = f"the ranks of the group, axis {axis}, {shape}"
            check_row(ranks, rank, shape, axis, what)
            expect.equal(ranks, theirs, what)
            check_members_hold_the_same(group, ranks, f"axis {axis} of {shape}")


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
