"""Checks of exercises/18_why_slow.py: each rank has its own times, none is measured."""

import dataclasses
import random
import statistics
import time

import pytest

from workshop.grader import expect, variants

expect.nothing_is_averaged()

FIELDS = ("data", "compute", "imbalance", "communication")


def steps_around(seed, typical, count):
    """Times of ``count`` steps, of which ``typical`` is the median, not the mean."""
    draws = random.Random(seed)
    half = count // 2
    below = [typical - draws.uniform(0.1, 0.9) for _ in range(half)]
    above = [typical + draws.uniform(1, 40) for _ in range(half)]
    times = [*below, typical, *above]
    draws.shuffle(times)
    return times


def measured(seed, ranks):
    """For each rank, given as (data, compute, real), its lists of times."""
    return [
        [
            steps_around(f"{seed} {rank} {part}", typical, 7 + 2 * rank)
            for part, typical in enumerate(row)
        ]
        for rank, row in enumerate(ranks)
    ]


def four(
    times,
    field,
    rank,
    *,
    alone=False,
    typical="median",
    work="least of each",
    real=max,
    least=0,
    apart=False,
):
    """One number of a step; the keywords are what goes wrong."""
    if alone:
        times = [times[rank]]
    middle = getattr(statistics, typical)
    rows = [[middle(part) for part in rank] for rank in times]
    needs = [data + compute for data, compute, _ in rows]
    slowest = max(needs)
    fastest = rows[needs.index(min(needs))]
    each = [[row[part] for row in rows] for part in (0, 1)]
    data, compute = {
        "least of each": [min(part) for part in each],
        "mean": [statistics.mean(part) for part in each],
        "most": [max(part) for part in each],
        "fastest rank": fastest[:2],
        "rank 0": rows[0][:2],
    }[work]
    if apart:
        slowest = sum(max(row[part] for row in rows) for part in (0, 1))
    longest = rows[rank][2] if real == "own" else real(row[2] for row in rows)
    beyond = longest - slowest
    imbalance = slowest - data - compute
    if least == "the fastest rank's":
        imbalance, beyond, least = 0.0, longest - min(needs), 0
    values = data, compute, imbalance, max(beyond, least)
    return dict(zip(FIELDS, values, strict=True))[field]


MISTAKES = {
    "nothing were collected: these are the numbers of this rank alone": {"alone": True},
    "means over the steps were taken, not medians": {"typical": "mean"},
    "the mean over the ranks were what every rank needs, not the least": {
        "work": "mean"
    },
    "the most that a rank needs were what every rank needs, not the least": {
        "work": "most"
    },
    "data and compute were those of the fastest rank, and not the least of each": {
        "work": "fastest rank"
    },
    "data and compute were those of rank 0": {"work": "rank 0"},
    "each rank took its own real step, not the longest": {"real": "own"},
    "the shortest real step counted, not the longest": {"real": min},
    "the slowest rank had the most of data and the most of computing: it's the rank "
    "with the largest sum": {"apart": True},
    "communication could be less than 0": {"least": -1e9},
    "all that the fastest rank doesn't need were communication": {
        "least": "the fastest rank's"
    },
}


def cases(world_size):
    """What a message says of them -> the (data, compute, real) of each rank."""
    unlike = [(2 + rank, 20 - 3 * rank, 60 + rank) for rank in range(world_size)]
    return {
        "one rank computes for 50 ms and the others for 30": [
            (1, 50 if rank == 1 else 30, 66) for rank in range(world_size)
        ],
        "a rank that waits longer for data computes less": unlike,
        "all ranks are alike": [(3, 40, 44 + rank) for rank in range(world_size)],
        "the real step is shorter than the slowest rank alone": [
            (5 * rank, 30, 28 + rank) for rank in range(world_size)
        ],
    }


def cause_of(found, arguments):
    """The words of a mistake; "" where values aren't even numbers."""
    try:
        values = [float(value) for value in found]
    except (TypeError, ValueError):
        return ""
    return variants.cause(values, arguments, four, MISTAKES)


@pytest.mark.ranks(3, 4)
def test_where_the_time_goes(exercise, rank, world_size, seed):
    """Four kinds of slow steps are split alike on all ranks."""
    found, asked, kinds = [], [], []
    if rank == 1:
        time.sleep(0.05)
    for kind, rows in cases(world_size).items():
        times = measured(seed, rows)
        step = exercise.split(*[list(part) for part in times[rank]])
        expect.that(
            dataclasses.is_dataclass(step), f"split returned {step!r}, and not a Step"
        )
        for field in FIELDS:
            found.append(getattr(step, field))
            asked.append((times, field, rank))
            kinds.append(kind)
    cause = cause_of(found, asked)
    for value, kind, arguments in zip(found, kinds, asked, strict=True):
        what = f"{arguments[1]} in ms, where {kind}"
        expect.close(value, four(*arguments), what, cause=cause)


LOSSES = {
    (30.0, 40.0, 5.0, 10.0): "data",
    (2.0, 31.0, 20.0, 15.0): "nothing",
    (2.0, 30.0, 20.0, 15.0): "nothing",
    (1.0, 30.0, 20.0, 15.0): "imbalance",
    (1.0, 30.0, 12.0, 40.0): "communication",
    (10.0, 80.0, 5.0, 5.0): "nothing",
    (3.0, 7.0, 0.0, 0.0): "data",  # exactly 30 %
    (2.0, 8.0, 0.0, 0.0): "nothing",
}


def named(numbers, *, share=0.3, of="all four", just="counts", any_loss=False):
    """What to cure; the keywords are what goes wrong."""
    losses = dict(zip(FIELDS, numbers, strict=True))
    whole = sum(numbers)
    if of == "compute":
        whole = losses["compute"]
    if of == "the losses":
        whole -= losses["compute"]
    if not any_loss:
        losses.pop("compute")
    name = max(losses, key=losses.__getitem__)
    enough = losses[name] > share * whole
    if just == "counts":
        enough = losses[name] >= share * whole
    if enough:
        return name
    return "nothing"


WRONG_NAMES = {
    "the share didn't matter": {"share": 0},
    "computing were a loss": {"any_loss": True},
    "a loss were compared with computing alone": {"of": "compute"},
    "a loss were compared with the three losses alone": {"of": "the losses"},
    "exactly 30 % weren't enough": {"just": "doesn't count"},
    "half a step were the limit": {"share": 0.5},
}


@pytest.mark.ranks(1)
def test_the_largest_loss(exercise, seed):
    """The largest of three losses is named if it takes 30 % of the step."""
    steps = list(LOSSES)
    found = [exercise.largest_loss(exercise.Step(*numbers)) for numbers in steps]
    arguments = [(numbers,) for numbers in steps]
    cause = variants.cause(found, arguments, named, WRONG_NAMES)
    for name, numbers in zip(found, steps, strict=True):
        what = f"the largest loss of {exercise.Step(*numbers)}"
        expect.equal(name, LOSSES[numbers], what, cause=cause)
