"""Checks of exercises/13_one_f_one_b.py."""

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect, variants

CASES = [
    (3, 4),
    (4, 8),
    (2, 5),
    (3, 3),
    (2, 2),
    (4, 6),
    (5, 7),
    (8, 17),
    (1, 3),
    (1, 1),
]
FEW = [(4, 2), (2, 1), (4, 1), (5, 3), (6, 4), (9, 7)]  # fewer micro-batches than ranks


def case(rank, p, m):
    return f"rank {rank} of {p} with {m} micro-batches"


def order_of(exercise, rank, p, m):
    actions = exercise.order(rank, p, m)
    what = f"the order of {case(rank, p, m)}"
    expect.that(actions is not None, f"{what} is None: is a `return` missing?")
    for place, action in enumerate(actions):
        shaped = isinstance(action, tuple | list) and len(action) == 2
        expect.that(
            shaped and action[0] in ("forward", "backward"),
            f'{what}: action {place} is {action!r}; expected ("forward", k) or '
            '("backward", k)',
        )
    return [tuple(action) for action in actions]


def rank_order(rank, p, m):
    """One forward and one backward in turn, found by the rule and not by counting."""
    live, forwards, backwards, actions = 0, 0, 0, []
    while backwards < m:
        if forwards < m and live < p - rank:
            actions.append(("forward", forwards))
            forwards, live = forwards + 1, live + 1
        else:
            actions.append(("backward", backwards))
            backwards, live = backwards + 1, live - 1
    return actions


def with_ahead(rank, p, m, *, ahead=lambda rank, p, m: min(p - rank - 1, m)):
    """The order with another number of forwards before the first pair."""
    first = max(0, min(ahead(rank, p, m), m))
    actions = [("forward", k) for k in range(first)]
    for k in range(first, m):
        actions += [("forward", k), ("backward", k - first)]
    return actions + [("backward", k) for k in range(m - first, m)]


MISTAKEN_AHEAD = {
    "one forward too few ran ahead: before the pairs there are p - r - 1": {
        "ahead": lambda rank, p, m: p - rank - 2
    },
    "min(p, m) - r - 1 forwards ran ahead: of p - r - 1 and m, take the smaller": {
        "ahead": lambda rank, p, m: min(p, m) - rank - 1
    },
    "no forward ran ahead: before the pairs there are p - r - 1": {
        "ahead": lambda rank, p, m: 0
    },
    "r forwards ran ahead: there are p - r - 1, the most on rank 0": {
        "ahead": lambda rank, p, m: min(rank, p - rank - 1)
    },
    "one forward at most ran ahead": {"ahead": lambda rank, p, m: min(1, p - rank - 1)},
    "with fewer micro-batches than ranks, no forward ran ahead": {
        "ahead": lambda rank, p, m: 0 if m < p else p - rank - 1
    },
    "with too few micro-batches, one forward less ran ahead than there are": {
        "ahead": lambda rank, p, m: min(p - rank - 1, m - 2)
    },
}


def cause_of_all(exercise):
    """The clause of a number of forwards ahead that gives all orders, or ""."""

    def asked(*its_case):
        return order_of(exercise, *its_case)

    cases = [(rank, p, m) for p, m in CASES + FEW for rank in range(p)]
    return variants.cause_in(asked, cases, with_ahead, MISTAKEN_AHEAD, most=1)


@pytest.mark.ranks(1)
def test_every_micro_batch_goes_forward_and_back_once(exercise):
    """Each micro-batch has one forward and later one backward, in order 0, 1, ..."""
    for p, m in CASES + FEW:
        for rank in range(p):
            actions = order_of(exercise, rank, p, m)
            for what in ("forward", "backward"):
                found = [k for name, k in actions if name == what]
                expect.equal(found, list(range(m)), f"{what}s of {case(rank, p, m)}")
            expect.equal(len(actions), 2 * m, f"actions of {case(rank, p, m)}")
            for k in range(m):
                early = actions.index(("backward", k)) < actions.index(("forward", k))
                expect.that(not early, f"{case(rank, p, m)}: backward {k} comes first")


@pytest.mark.ranks(1)
def test_no_rank_holds_too_much(exercise):
    """Rank r of p holds at most p - r micro-batches between forward and backward."""
    for p, m in CASES + FEW:
        for rank in range(p):
            live = most = 0
            for what, _ in order_of(exercise, rank, p, m):
                live += 1 if what == "forward" else -1
                most = max(most, live)
            expect.that(
                most <= p - rank,
                f"{case(rank, p, m)} holds {most} at a time, "
                f"expected at most {p - rank}",
            )


@pytest.mark.ranks(3, 4)
def test_ranks_that_follow_it_end(exercise, rank, world_size, seed):
    """Ranks that send numbers in this order all finish the step."""
    for m in (2, world_size, 2 * world_size + seed % 2):
        last = world_size - 1
        sums, sent, under_way = {}, {}, []
        for what, k in order_of(exercise, rank, world_size, m):
            came = torch.zeros(1, dtype=torch.float64)
            forward = what == "forward"
            source, to = (rank - 1, rank + 1) if forward else (rank + 1, rank - 1)
            if 0 <= source <= last:
                dist.recv(came, source, tag=k + (0 if forward else 1000))
            if forward:
                sums[k] = came + rank + 10 * k
                came = sums[k]
            else:
                came = sums[k] if rank == last else came
                sent[k] = came
            if 0 <= to <= last:
                tag = k + (0 if forward else 1000)
                under_way.append((dist.isend(came.clone(), to, tag=tag), came))
        for work, _ in under_way:
            work.wait()
        for k in range(m):
            total = sum(range(world_size)) + 10 * k * world_size
            expect.close(sent[k], torch.tensor([float(total)]).double(), f"number {k}")


@pytest.mark.ranks(1)
def test_step_is_as_short_as_with_gpipe(exercise):
    """If each action takes one slot, p ranks need 2 (m + p - 1) slots."""
    cause = cause_of_all(exercise)
    for p, m in CASES + FEW:
        orders = [order_of(exercise, rank, p, m) for rank in range(p)]
        slots = length(orders)
        what = f"{p} ranks, {m} micro-batches"
        expect.that(slots is not None, f"{what}: wait forever")
        expect.equal(slots, 2 * (m + p - 1), f"slots of {what}", cause=cause)


@pytest.mark.ranks(1)
def test_the_order_is_that_of_1f1b(exercise):
    """A forward wherever one more may be held, else a backward."""
    cause = cause_of_all(exercise)
    for p, m in CASES + FEW:
        for rank in range(p):
            actions, what = order_of(exercise, rank, p, m), case(rank, p, m)
            expect.equal(actions, rank_order(rank, p, m), what, cause=cause)


def length(orders):
    """How many slots a step takes; None if a rank waits forever."""
    done, slots = set(), 0
    places = [0] * len(orders)
    while any(at < len(mine) for at, mine in zip(places, orders, strict=True)):
        ready = []
        for rank, mine in enumerate(orders):
            if places[rank] < len(mine):
                what, k = mine[places[rank]]
                neighbor = rank - 1 if what == "forward" else rank + 1
                needed = [(what, neighbor, k)] if 0 <= neighbor < len(orders) else []
                needed += [("forward", rank, k)] if what == "backward" else []
                if done.issuperset(needed):
                    ready.append((what, rank, k))
        if not ready:
            return None
        for action in ready:
            done.add(action)
            places[action[1]] += 1
        slots += 1
    return slots
