"""Checks of exercises/19_straggler.py: chance delays, a warm-up, no slow rank."""

import copy
import random
from statistics import median

import pytest

from workshop.grader import expect

RANKS, STEPS = 5, 9


def record(seed, slow=None, part="compute", compute=0.2, data=0.05):
    """times[rank][step]: ``slow`` is late in each step, another rank in a few."""
    draw = random.Random(f"{seed} {slow} {part}")
    chance = draw.choice([rank for rank in range(RANKS) if rank != slow])
    late = draw.sample(range(1, STEPS), 3)
    times = [[] for _ in range(RANKS)]
    for step in range(STEPS):
        parts = []
        for rank in range(RANKS):
            mine = {"data": data, "compute": compute}
            mine = {name: t * draw.uniform(0.98, 1.02) for name, t in mine.items()}
            if step == 0:  # the warm-up: all are slow, and the slow one least
                mine["compute"] += 9.0 if rank != slow else 1.0
            if rank == slow:
                mine[part] += 0.1
            if rank == chance and step in late:
                mine["compute"] += 6.0
            parts.append(mine)
        end = max(sum(mine.values()) for mine in parts)
        for rank, mine in enumerate(parts):
            waiting = end - sum(mine.values()) + 0.01
            times[rank].append(mine | {"waiting": waiting})
    return times


def same_rank(found, right, what):
    """As ``expect.equal``; None is an answer here, and no missing return."""
    expect.that(found is not None or right is None, f"{what}: is None, not {right}")
    expect.equal(found, right, what)


@pytest.mark.ranks(1, init=False)
def test_typical(exercise):
    """The median of all steps but the first; an even number of steps, too."""
    seconds = (9.0, 0.2, 0.1, 7.0, 0.4)
    steps = [{"data": s, "compute": 1.0, "waiting": 2 * s} for s in seconds]
    given = copy.deepcopy(steps)
    expect.close(exercise.typical(given, "data"), 0.3, "the typical data time")
    expect.equal(given, steps, "the steps that typical was given")
    expect.close(exercise.typical(steps, "waiting"), 0.6, "the typical waiting")
    expect.close(exercise.typical(steps[:4], "data"), 0.2, "of three steps, data")


@pytest.mark.ranks(1, init=False)
def test_slow_rank(exercise, seed):
    """The rank that waits least, in spite of chance delays of another one."""
    for slow in range(RANKS):
        for part in ("compute", "data"):
            times = record(seed, slow, part)
            before = copy.deepcopy(times)
            same_rank(exercise.slow_rank(times), slow, f"the slow rank, by {part}")
            expect.that(times == before, "slow_rank changed the caller's times")


@pytest.mark.ranks(1, init=False)
def test_nobody_is_slow(exercise, seed):
    """If all wait about as long, it is None; the border is the median and a tenth."""
    expect.equal(exercise.slow_rank(record(seed)), None, "without a slow rank")
    for waits, compute in (
        ([1.0, 0.0], 5.0),
        ([0.1, 0.1, 0.35], 0.4),
        ([3.0] * 2, 1.0),
    ):
        steps = [{"data": 5.0 if compute > 1 else 1.0, "compute": compute}] * 3
        times = [[step | {"waiting": w} for step in steps] for w in waits]
        what = f"the slow rank, if ranks wait {waits} s, and work {steps[0]}"
        expect.equal(exercise.slow_rank(times), None, what)
    step = {"data": 0.4, "compute": 1.0}
    for others, right in ((0.79, None), (0.81, 1)):
        for waits in (
            [others, 0.6],
            [others, 0.6, others, 1.9],
            [0.61, 0.6, others, others],  # another one that waits for about as little
        ):
            times = [[step | {"waiting": w} for _ in range(4)] for w in waits]
            found = exercise.slow_rank(times)
            same_rank(found, right, f"the slow rank, if ranks wait {waits} s")


@pytest.mark.ranks(1, init=False)
def test_reason(exercise, seed):
    """The part of which the slow rank has more, not the part that is largest."""
    for part in ("compute", "data"):
        for compute, data in ((0.2, 0.05), (0.05, 0.2)):
            times = record(seed, 3, part, compute, data)
            before = copy.deepcopy(times)
            what = f"the reason, with {compute} s of compute and {data} s of data"
            expect.equal(exercise.reason(times, 3), part, what)
            expect.that(times == before, "reason changed the caller's times")
    times = record(seed, 0, "data")
    medians = [median(s["data"] for s in steps) for steps in times]
    expect.that(medians[0] == max(medians), "the check itself is wrong")
    expect.equal(exercise.reason(times, 0), "data", "the reason, of rank 0")
    for part, data, compute in (
        ("data", (0.3, 0.1, 0.1, 0.7), (1.15, 1.0, 1.0, 1.0)),
        ("compute", (0.05, 0.01, 0.01), (0.3, 0.2, 0.2)),
        ("compute", (0.1, 0.9, 0.9), (1.5, 1.0, 1.0)),  # less of one, more of the other
    ):
        ranks = zip(data, compute, strict=True)
        times = [[{"data": d, "compute": c, "waiting": 0.1}] * 3 for d, c in ranks]
        what = f"the reason of rank 0, if ranks load for {data} and compute {compute} s"
        expect.equal(exercise.reason(times, 0), part, what)
    slow = [{"data": 0.4, "compute": 1.2, "waiting": 0.1}] * 4
    loads = ((0.1, 0.1, 0.1), (0.1, 0.4, 0.4), (0.1, 0.4, 0.4))
    others = [
        [{"data": d, "compute": 1.0, "waiting": 0.1} for d in (9.0, *own)]
        for own in loads
    ]
    found = exercise.reason([slow, *others], 0)
    what = "the reason, if the others' typical data times are 0.1, 0.4 and 0.4 s"
    expect.equal(found, "compute", f"{what}, and rank 0's is 0.4 s")
