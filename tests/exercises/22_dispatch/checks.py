"""Checks of exercises/22_dispatch.py: rows that carry where they are from."""

import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()

WIDTH = 4


def counts_of(seed, ranks, own_experts):
    """[ranks, E]: each rank's rows for each expert; some 0."""
    generator = torch.Generator().manual_seed(seed)
    experts = ranks * own_experts
    return torch.randint(0, 4, (ranks, experts), generator=generator)


def all_rows(counts):
    """The rows of each rank, sorted by expert: rank, expert, how many before, 1."""
    rows = []
    for rank, of_rank in enumerate(counts.tolist()):
        own = [
            [rank + 1, expert + 1, index + 1, 1]
            for expert, count in enumerate(of_rank)
            for index in range(count)
        ]
        rows.append(torch.tensor(own, dtype=torch.float64).view(-1, WIDTH))
    return rows


def arrived(counts, rank):
    """What arrives at a rank, sorted by rank, then by expert."""
    own_experts = counts.shape[1] // len(counts)
    first = rank * own_experts
    rows = torch.cat(all_rows(counts))
    here = (rows[:, 1] > first) & (rows[:, 1] <= first + own_experts)
    return rows[here]


def right_rows(counts, rank):
    rows = arrived(counts, rank)
    return rows[rows[:, 1].argsort(stable=True)]


def mistaken(counts, rank):
    rows = arrived(counts, rank)
    backwards = rows.flip(0)
    return {
        "what arrived, sorted by rank: the experts need it by expert": rows,
        "right, except that the ranks are in reverse order": backwards[
            backwards[:, 1].argsort(stable=True)
        ],
        "this rank's own rows: nothing was sent": all_rows(counts)[rank],
    }


GLOBAL_RANK = (
    "that of the experts by dist.get_rank(), the rank in the world: the rank in the "
    "group is dist.get_rank(group)"
)


def own_in(counts, rank, own_experts):
    """What each rank has for the experts of this one."""
    return counts[:, rank * own_experts : (rank + 1) * own_experts].contiguous()


def compare(exercise, counts, rank, label, group=None):
    """Both functions on this rank of ``len(counts)`` ranks."""
    ranks = len(counts)
    own_experts = counts.shape[1] // ranks
    arriving = own_in(counts, rank, own_experts)
    own_counts = counts[rank].clone()
    found = exercise.exchange_counts(own_counts, group)
    what = f"exchange_counts {label}"
    of_the_world = own_in(counts, dist.get_rank(), own_experts)
    if found.shape == of_the_world.shape != arriving.shape:
        shape = list(found.shape)
        expect.that(False, f"{what} has shape {shape}, and is {GLOBAL_RANK}")
    names = {
        "right, but with rows and columns swapped": arriving.T,
        GLOBAL_RANK: of_the_world,
    }
    if own_experts == ranks:
        names["this rank's own counts: nothing was exchanged"] = counts[rank].view(
            ranks, -1
        )
    expect.close(found, arriving, what, mistaken=names)
    expect.unchanged(own_counts, counts[rank], "counts after exchange_counts")
    given = all_rows(counts)[rank]
    before = given.clone()
    own_counts, own_arriving = counts[rank].clone(), arriving.clone()
    rows = exercise.dispatch(given, own_counts, own_arriving, group)
    right = right_rows(counts, rank)
    what = f"dispatch {label}"
    expect.close(rows, right, what, mistaken=mistaken(counts, rank))
    expect.unchanged(given, before, "the rows that were given, afterwards")
    expect.unchanged(own_counts, counts[rank], "counts after dispatch")
    expect.unchanged(own_arriving, arriving, "arriving after dispatch")


@pytest.mark.ranks(3, 4)
def test_counts(exercise, rank, world_size, seed):
    """exchange_counts: what each rank has for each of this rank's experts."""
    for own_experts in (world_size, 1, 2):
        counts = counts_of(seed, world_size, own_experts)
        first = rank * own_experts
        right = counts[:, first : first + own_experts]
        given = counts[rank].clone()
        found = exercise.exchange_counts(given)
        what = f"exchange_counts of {world_size * own_experts} experts"
        names = {}
        if own_experts == world_size:
            own = counts[rank].view(world_size, -1)
            names["this rank's own counts: nothing was exchanged"] = own
            names["right, but with rows and columns swapped"] = right.T
        expect.close(found, right, what, mistaken=names)
        expect.unchanged(given, counts[rank], "counts after exchange_counts")


@pytest.mark.ranks(3, 4)
def test_equal_parts(exercise, rank, world_size, seed):
    """dispatch: the same number of rows for each expert."""
    for own_experts in (1, 2):
        counts = torch.full((world_size, world_size * own_experts), 2)
        compare(exercise, counts, rank, f"of 2 rows for each of {counts.shape[1]}")


@pytest.mark.ranks(3, 4)
def test_uneven_parts(exercise, rank, world_size, seed):
    """dispatch: as many rows as there are for each expert, some none."""
    for own_experts in (1, 2, 3):
        counts = counts_of(seed, world_size, own_experts)
        if rank == 1:
            time.sleep(0.05)
        compare(exercise, counts, rank, f"of uneven parts, {own_experts} own experts")


@pytest.mark.ranks(3, 4)
def test_an_expert_and_a_rank_without_rows(exercise, rank, world_size, seed):
    """A rank has no rows; all rows are for rank 0; a rank has none and gets none."""
    counts = counts_of(seed, world_size, 2)
    counts[1] = 0
    counts[:, 3] = 0
    compare(exercise, counts, rank, "with a rank without rows")
    counts = counts_of(seed + 1, world_size, 2)
    counts[:, 2:] = 0
    compare(exercise, counts, rank, "with all rows for rank 0")
    counts = counts_of(seed + 2, world_size, 2)
    counts[2] = counts[:, 4:6] = 0
    compare(exercise, counts, rank, "where rank 2 has no rows and gets none")


@pytest.mark.ranks(4)
def test_two_groups(exercise, rank, world_size, seed):
    """Ranks 0 and 2 share experts, 1 and 3 others: only the group exchanges."""
    groups = [dist.new_group([first, first + 2]) for first in (0, 1)]
    counts = counts_of(seed + rank % 2, 2, 3)
    label = f"in the group of ranks {rank % 2} and {rank % 2 + 2}"
    compare(exercise, counts, rank // 2, label, groups[rank % 2])


@pytest.mark.ranks(4)
def test_a_rank_sends_only_what_is_needed(exercise, rank, world_size, seed, ledger):
    """All-to-alls: gathering everything sends each row to all ranks."""
    counts = counts_of(seed, world_size, 2)
    ledger.clear()
    compare(exercise, counts, rank, "of uneven parts")
    gathering = ("all_gather", "all_gather_into_tensor", "broadcast", "all_reduce")
    used = sorted({row.op for row in ledger.rows if row.op in gathering})
    expect.right_way(
        not used,
        f"{', '.join(used)} was called: that gives every rank everything, and an "
        "all_to_all_single only what it needs",
    )
    sent = sum(row.numel for row in ledger.rows if row.op.startswith("all_to_all"))
    most = counts.shape[1] + WIDTH * int(counts[rank].sum())
    expect.right_way(
        sent <= most,
        f"{sent} numbers are sent: counts and rows of this rank are {most}, and "
        "each rank needs only its part of them",
    )
