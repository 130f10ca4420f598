"""Checks of exercises/22_dispatch.py: rows that carry where they are from."""

import contextlib
import inspect
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


def sizes_of(counts, rank):
    """(sent, received) of a rank: rows for each rank, and from each rank."""
    of_ranks = counts.view(len(counts), len(counts), -1).sum(2)
    return of_ranks[rank].tolist(), of_ranks[:, rank].tolist()


def transposed(counts, rank):
    """Rows for each rank, if a rank's counts are cut as [E/N, N]."""
    return counts[rank].view(-1, len(counts)).sum(0).tolist()


def are_equal(sizes):
    return len(set(sizes)) == 1


@contextlib.contextmanager
def sizes_are_known(counts, rank, what):
    """Rows that are sent by wrong sizes: gloo says only that lengths don't match.

    All ranks make the same mistake. Where its sizes are right for some rank, nothing is
    said: that rank would send, and wait for the others.
    """
    ranks = range(len(counts))
    sent, received = sizes_of(counts, rank)
    all_need_sizes = not any(
        are_equal(sizes) for one in ranks for sizes in sizes_of(counts, one)
    )
    all_transposed = all(
        transposed(counts, one) != sizes_of(counts, one)[0] for one in ranks
    )
    exchange = dist.all_to_all_single
    signature = inspect.signature(exchange)

    def spied(*args, **names):
        given = signature.bind(*args, **names).arguments
        rows, sizes = given["input"], given.get("input_split_sizes")
        is_rows = rows.is_floating_point() and len(rows) == sum(sent)
        no_sizes = sizes is None and given.get("output_split_sizes") is None
        if is_rows and no_sizes and all_need_sizes:
            expect.that(
                False,
                f"{what}: without sizes, all_to_all_single cuts {sum(sent)} rows into "
                f"equal parts. This rank sends {sent} and receives {received}: pass "
                "both lists",
            )
        cut = is_rows and sizes is not None and list(sizes) == transposed(counts, rank)
        if cut and all_transposed:
            expect.that(
                False,
                f"{what}: the sizes sent are {sizes}, expected {sent}",
                cause="counts were cut as [E/N, N]: cut them as [N, E/N]",
            )
        return exchange(*args, **names)

    dist.all_to_all_single = spied
    try:
        yield
    finally:
        dist.all_to_all_single = exchange


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
    what = f"dispatch {label}"
    with sizes_are_known(counts, rank, what):
        rows = exercise.dispatch(given, own_counts, own_arriving, group)
    right = right_rows(counts, rank)
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
