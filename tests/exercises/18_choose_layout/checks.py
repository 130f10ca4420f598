"""Checks of exercises/18_choose_layout.py: clusters that the learner hasn't seen."""

import math
import numbers
from functools import cache
from itertools import product

import pytest

from workshop.grader import expect, variants

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


RULES = {  # t, p, d and the job -> whether a layout obeys the rule
    "t must divide the devices of a node": lambda t, p, d, job: job[5] % t == 0,
    "t must divide the heads": lambda t, p, d, job: job[2] % t == 0,
    "p must divide the layers": lambda t, p, d, job: job[1] % p == 0,
    "d must divide the batch": lambda t, p, d, job: job[3] % d == 0,
}


def broken_rules(t, p, d, job):
    """The rules that a layout breaks, as words."""
    if t * p * d != job[4] * job[5]:
        return f"t p d is {t * p * d}, and there are {job[4] * job[5]} devices"
    return " and ".join(
        words for words, rule in RULES.items() if not rule(t, p, d, job)
    )


@cache
def legal(job):
    """By trying every grid of the right size."""
    devices = job[4] * job[5]
    divisors = [n for n in range(1, devices + 1) if devices % n == 0]
    grids = [(t, p, devices / t / p) for t, p in product(divisors, repeat=2)]
    whole = [(t, p, int(d)) for t, p, d in grids if d == int(d)]
    return {grid for grid in whole if not broken_rules(*grid, job)}


def held(
    job,
    t,
    p,
    d,
    *,
    sizes=(4, 12),
    cut="tp",
    shared="d",
    part=None,
    then=None,
    rounds="parameters",
):
    """Bytes of a rank; ``cut`` and ``shared`` are the axes that divide."""
    axes = {"t": t, "p": p, "d": d}
    own = (part or ceil_of)(job[0], math.prod(axes[axis] for axis in cut))
    ranks = math.prod(axes[axis] for axis in shared)
    if rounds == "bytes":
        return sizes[0] * own + ceil_of(sizes[1] * own, ranks)
    shard = (then or ceil_of)(own, ranks)
    return sizes[0] * own + sizes[1] * shard


def ceil_of(number, ranks):
    return -(-number // ranks)


def floor_of(number, ranks):
    return number // ranks


MISTAKEN_STATE = {
    "the part of a rank were rounded down": {"part": floor_of},
    "the shard of the optimizer state were rounded down": {"then": floor_of},
    "bytes were rounded up, and not the parameters of a shard": {"rounds": "bytes"},
    "data ranks shared the gradients, too": {"sizes": (2, 14)},
    "data ranks shared all 16 bytes": {"sizes": (0, 16)},
    "data ranks shared nothing": {"shared": ""},
    "the parameter and its gradient had 2 bytes together": {"sizes": (2, 12)},
    "the parameter and its gradient had 8 bytes together": {"sizes": (8, 12)},
    "the optimizer state had 8 bytes": {"sizes": (4, 8)},
    "the optimizer state were left out": {"sizes": (4, 0)},
    "stages didn't cut the parameters": {"cut": "t"},
    "tensor ranks didn't cut the parameters": {"cut": "p"},
    "neither tensor ranks nor stages cut the parameters": {"cut": ""},
    "data ranks cut the parameters, too": {"cut": "tpd", "shared": ""},
    "all ranks shared the optimizer state once more": {"shared": "tpd"},
}


def best(
    job,
    *,
    share=0.6,
    strict=False,
    bubble=4,
    single=False,
    exactly=True,
    rounded=False,
    count=lambda t, p, d: t * p,
    then=lambda t, p, d: -t,
):
    """The layout to choose, or None; the keywords are what goes wrong."""
    memory = job[-1] // 10 * 10 if rounded else job[-1]
    room = round(10 * share) * memory
    fitting = []
    for t, p, d in legal(job):
        over = 10 * held(job, t, p, d) - room
        enough = job[3] / d > bubble * p or (exactly and job[3] / d == bubble * p)
        few = not enough and (p > 1 or single)
        if over < 0 or (over == 0 and not strict):
            fitting += [] if few else [(count(t, p, d), then(t, p, d), (t, p, d))]
    return min(fitting)[2] if fitting else None


MISTAKEN_CHOICES = {
    "all of the memory could be used, not 60 %": {"share": 1.0},
    "40 % of the memory could be used, not 60 %": {"share": 0.4},
    "a state of exactly 60 % were too large": {"strict": True},
    "the bubble didn't matter: it takes 4 p micro-batches": {"bubble": 0},
    "p micro-batches were enough, not 4 p": {"bubble": 1},
    "2 p micro-batches were enough, not 4 p": {"bubble": 2},
    "it took 8 p micro-batches, not 4 p": {"bubble": 8},
    "a single stage needed 4 micro-batches, too": {"single": True},
    "of equal t p, the most stages were wanted, not the most tensor ranks": {
        "then": lambda t, p, d: t
    },
    "the largest t p were wanted": {"count": lambda t, p, d: -t * p},
    "the smallest t + p were wanted, not t p": {"count": lambda t, p, d: t + p},
    "the fewest stages were wanted first": {"count": lambda t, p, d: p},
    "the fewest tensor ranks were wanted first": {"count": lambda t, p, d: t},
    "the fewest stages were wanted first, and then the fewest tensor ranks": {
        "count": lambda t, p, d: p,
        "then": lambda t, p, d: t,
    },
    "memory // 10 were taken first, which drops its remainder": {"rounded": True},
    "exactly 4 p micro-batches weren't enough": {"exactly": False},
}


def words(job):
    return (
        f"{job.parameters:,} parameters, {job.layers} layers, {job.heads} heads, batch "
        f"{job.batch}, {job.nodes} x {job.per_node} devices"
    )


def as_tuple(exercise, layout, what):
    right = isinstance(layout, exercise.Layout)
    expect.that(right, f"{what} is {layout!r}, a {type(layout).__name__}, not a Layout")
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
                f"{words(job)}: (t, p, d) = {layout} breaks a rule"
                f"\n    {broken_rules(*layout, sizes)}",
            )
        missing = sorted(legal(sizes) - set(mine))
        expect.that(
            not missing, f"{words(job)}: {(missing or [0])[0]} is legal, but not listed"
        )
        expect.that(len(mine) == len(set(mine)), f"{words(job)}: one is listed twice")


@pytest.mark.ranks(1)
def test_state_of_a_rank(exercise):
    """Four bytes of each of the rank's parameters, and a shard of the other twelve."""
    cases = [(sizes, *grid) for sizes in JOBS for grid in sorted(legal(sizes))]
    found = [
        exercise.state_bytes(exercise.Job(*sizes), exercise.Layout(*grid))
        for sizes, *grid in cases
    ]
    cause = variants.cause(found, cases, held, MISTAKEN_STATE)
    for number, (sizes, *grid) in zip(found, cases, strict=True):
        what = f"state of {words(exercise.Job(*sizes))}, (t, p, d) = {tuple(grid)}"
        expect.that(
            isinstance(number, int), f"{what} is {number!r}, not a whole number"
        )
        expect.equal(number, held(sizes, *grid), what, cause=cause)


@pytest.mark.ranks(1)
def test_choice(exercise):
    """The smallest t * p that fits; of equal ones, the most tensor ranks."""
    found = [exercise.choose(exercise.Job(*sizes)) for sizes in JOBS]
    plain = [None if layout is None else tuple(layout) for layout in found]
    cause = variants.cause(plain, [(sizes,) for sizes in JOBS], best, MISTAKEN_CHOICES)
    for layout, sizes in zip(found, JOBS, strict=True):
        what, wanted = f"choice for {words(exercise.Job(*sizes))}", best(sizes)
        if wanted is None:
            nothing = f"{what} is {layout}, but no layout fits"
            expect.that(layout is None, nothing, cause=cause)
            continue
        none = f"{what} is None, expected {wanted}"
        expect.that(layout is not None, none, cause=cause)
        mine = as_tuple(exercise, layout, what)
        other = f"{what} is {mine}, expected {wanted}"
        expect.that(mine == wanted, other, cause=cause)
