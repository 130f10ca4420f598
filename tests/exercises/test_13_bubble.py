"""Checks of exercises/13_bubble.py: everything is counted in a simulated step."""

from fractions import Fraction
from numbers import Integral, Rational

import pytest

from grader import expect

CASES = [(3, 4), (4, 8), (2, 4), (3, 5), (4, 2), (5, 3), (6, 9), (2, 1), (1, 4), (1, 1)]
CASES += [(8, 3), (7, 15)]


def orders(schedule, p, m):
    """The actions of each rank, by rules and not by formulas."""
    found = []
    for rank in range(p):
        most = m if schedule == "gpipe" else p - rank
        forwards, backwards, actions = 0, 0, []
        while backwards < m:
            if forwards < m and forwards - backwards < most:
                actions.append(("forward", forwards))
                forwards += 1
            else:
                actions.append(("backward", backwards))
                backwards += 1
        found.append(actions)
    return found


def count(schedule, p, m):
    """(idle over useful slots, most micro-batches held by each rank)."""
    todo, done, slots = orders(schedule, p, m), set(), 0
    held = [[0] for _ in range(p)]
    while any(todo):
        ready = []
        for rank, actions in enumerate(todo):
            if actions:
                what, k = actions[0]
                neighbour = rank - 1 if what == "forward" else rank + 1
                inside = 0 <= neighbour < p
                if not inside or (what, neighbour, k) in done:
                    ready.append((what, rank, k))
        for action in ready:
            what, rank, _ = action
            done.add(action)
            todo[rank].pop(0)
            held[rank].append(held[rank][-1] + (1 if what == "forward" else -1))
        slots += 1
    return Fraction(slots - 2 * m, 2 * m), [max(counts) for counts in held]


@pytest.mark.ranks(1)
def test_bubble_is_what_a_step_idles(exercise):
    """Idle over useful slots, as counted in a step of p ranks and m micro-batches."""
    for p, m in CASES:
        counted, _ = count("1f1b", p, m)
        expect.equal(count("gpipe", p, m)[0], counted, "the bubble of both schedules")
        total = counted / (1 + counted)
        what = f"the bubble of {p} ranks and {m} micro-batches"
        found = exercise.bubble(p, m)
        if found is not None and found == total != counted:
            expect.that(False, f"{what}, {found}, is idle over all slots")
        expect.that(
            found is None or isinstance(found, Rational),
            f"{what} is a {type(found).__name__}, {found}; expected a Fraction: exact",
        )
        expect.equal(found, counted, what)


@pytest.mark.ranks(1)
def test_what_a_rank_holds(exercise):
    """The most micro-batches between their forward and their backward, as counted."""
    for schedule in ("gpipe", "1f1b"):
        for p, m in CASES:
            _, held = count(schedule, p, m)
            for rank in range(p):
                what = f"held by rank {rank} of {p} with {schedule}, m = {m}"
                found = exercise.most_held(schedule, rank, p, m)
                expect.equal(found, held[rank], what)
                expect.that(isinstance(found, Integral), f"{what} is no whole number")


@pytest.mark.ranks(1)
def test_fewest_micro_batches(exercise):
    """The fewest that divide the batch and idle no more than is allowed."""
    for p, size, limit in (
        (4, 24, Fraction(1, 2)),
        (4, 24, Fraction(1, 4)),  # exactly reached by 12
        (4, 30, Fraction(1, 3)),
        (3, 35, Fraction(3, 10)),  # the next one that divides is larger by far
        (4, 24, Fraction(3, 10)),
        (8, 64, Fraction(1, 8)),
        (2, 7, Fraction(2)),
        (5, 8, Fraction(1, 10)),  # impossible
        (1, 9, Fraction(0)),
        (2, 7, Fraction(1, 7)),  # reached by single images
        (2, 20, Fraction(1, 10)),  # which no float is
        (9, 48, Fraction(1, 2)),
    ):
        fits = [
            m
            for m in range(1, size + 1)
            if size % m == 0 and count("1f1b", p, m)[0] <= limit
        ]
        found = exercise.fewest_micro_batches(p, size, limit)
        what = f"{p} ranks, a batch of {size}, a bubble of at most {limit}"
        if not fits:
            expect.that(
                found is None, f"{what}: is {found}, but nothing is fine enough"
            )
        else:
            expect.that(found is not None, f"{what}: is None, expected {min(fits)}")
            expect.equal(found, min(fits), what)
