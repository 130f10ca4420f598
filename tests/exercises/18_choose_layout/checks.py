"""Checks of exercises/18_choose_layout.py: clusters that the learner hasn't seen."""

import math
import numbers
from functools import cache
from itertools import product

import pytest

from workshop.grader import expect

expect.nothing_is_averaged()

GB = 1_000_000_000
# parameters, layers, heads, batch, nodes, per_node, memory
JOBS = [
    (1_300_000_000, 24, 16, 256, 1, 8, 80 * GB),  # one device is enough
    (12_850_000_000, 40, 40, 1024, 8, 8, 80 * GB),
    (174_600_000_000, 96, 96, 2048, 128, 8, 80 * GB),
    (30_000_000_000, 48, 56, 96, 4, 6, 64 * GB),  # 6 devices, heads by 7 and 8
    (6_700_000_001, 36, 25, 60, 3, 4, 24 * GB),  # heads that 2 and 4 don't divide
    (70_000_000_000, 80, 64, 512, 16, 4, 40 * GB),  # the axis in the node is short
    (20_000_000_000, 44, 64, 32, 4, 8, 32 * GB),  # few micro-batches
    (13_000_000_000, 40, 40, 7, 1, 8, 80 * GB),  # a batch that data ranks can't share
    (900_000_000_000, 96, 96, 64, 2, 8, 80 * GB),  # nothing fits
    (9_000_000_000, 30, 1, 120, 5, 2, 80 * GB),  # a single head
    (18, 4, 4, 16, 1, 4, 160),  # 60 % are exactly reached by two ranks
    (20, 4, 4, 16, 1, 4, 169),  # 100 of 101.4 bytes
    (1_300_000_000, 24, 16, 8, 1, 8, 80 * GB),  # one stage needs no micro-batches
    (6_000_000_000, 36, 3, 24, 2, 6, 21 * GB),  # the first that fits has a bubble
    (18, 4, 1, 16, 1, 4, 160),  # exactly 4 p micro-batches
    (18, 4, 3, 48, 1, 6, 120),  # two stages are fewer than three tensor ranks
]


@cache
def legal(job):
    """By trying every grid of the right size."""
    _, layers, heads, batch, nodes, per_node, _ = job
    devices = nodes * per_node
    divisors = [n for n in range(1, devices + 1) if devices % n == 0]
    return {
        (t, p, devices // t // p)
        for t, p in product(divisors, repeat=2)
        if devices % (t * p) == 0 and per_node % t == heads % t == layers % p == 0
        if batch % (devices // t // p) == 0
    }


def held(job, t, p, d):
    own = math.ceil(job[0] / (t * p)) if job[0] < 2**50 else -(-job[0] // (t * p))
    return 2 * own + 2 * own + 12 * -(-own // d)


def best(job):
    fitting = [
        (t * p, -t, (t, p, d))
        for t, p, d in legal(job)
        if 10 * held(job, t, p, d) <= 6 * job[-1] and (p == 1 or job[3] / d >= 4 * p)
    ]
    return min(fitting)[2] if fitting else None


def words(job):
    return (
        f"{job.parameters:,} parameters, {job.layers} layers, {job.heads} heads, batch "
        f"{job.batch}, {job.nodes} x {job.per_node} devices"
    )


def as_tuple(exercise, layout, what):
    right = isinstance(layout, exercise.Layout)
    expect.that(right, f"{what} is {layout!r}, a {type(layout).__name__}, no Layout")
    whole = all(isinstance(ranks, numbers.Integral) for ranks in layout)
    expect.that(whole, f"{what} is {layout!r}: ranks are whole numbers")
    return tuple(layout)


@pytest.mark.ranks(1)
def test_legal_layouts(exercise):
    """All grids that divide devices, heads, layers and batch; no others."""
    for sizes in JOBS:
        job = exercise.Job(*sizes)
        found = exercise.legal_layouts(job)
        expect.that(isinstance(found, list), f"layouts are {found!r}, not a list")
        mine = [as_tuple(exercise, layout, "a legal layout") for layout in found]
        for layout in mine:
            expect.that(
                layout in legal(sizes),
                f"{words(job)}: (t, p, d) = {layout} breaks a rule",
            )
        missing = sorted(legal(sizes) - set(mine))
        expect.that(
            not missing, f"{words(job)}: {(missing or [0])[0]} is legal, but not listed"
        )
        expect.that(len(mine) == len(set(mine)), f"{words(job)}: one is listed twice")


@pytest.mark.ranks(1)
def test_state_of_a_rank(exercise):
    """Four bytes of each of the rank's parameters, and a shard of the other twelve."""
    for sizes in JOBS:
        job = exercise.Job(*sizes)
        for layout in sorted(legal(sizes)):
            what = f"state of {words(job)}, (t, p, d) = {layout}"
            found = exercise.state_bytes(job, exercise.Layout(*layout))
            expect.that(isinstance(found, int), f"{what} is {found!r}, no whole number")
            expect.equal(found, held(sizes, *layout), what)


@pytest.mark.ranks(1)
def test_choice(exercise):
    """The smallest t * p that fits; of equal ones, the most tensor ranks."""
    for sizes in JOBS:
        job = exercise.Job(*sizes)
        what, wanted, found = f"choice for {words(job)}", best(sizes), None
        found = exercise.choose(job)
        if wanted is None:
            expect.that(found is None, f"{what} is {found}, but no layout fits")
            continue
        expect.that(found is not None, f"{what} is None, expected {wanted}")
        mine = as_tuple(exercise, found, what)
        expect.that(mine == wanted, f"{what} is {mine}, expected {wanted}")
