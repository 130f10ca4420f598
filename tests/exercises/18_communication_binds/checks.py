"""Checks of exercises/18_communication_binds.py: ranks of which one is slow."""

import itertools
import numbers
import operator
import statistics

import pytest
import torch
import torch.distributed as dist

from workshop.grader import clocks, expect, variants

expect.nothing_is_averaged()

LINK = clocks.Link(2e-4, 1 / 1.5e6, first=0.3, slower=(1.2, 1.0, 1.7))
NUMEL = 1000  # of the bucket, in float32
CLOCK_TICK = 2e-9  # seconds: a clock may count nanoseconds
OFFSETS = 5.0, 91.0, 17.0, 3.0  # what the ranks' clocks show at the beginning
SPEEDS = 1.0, 1.3, 0.8, 1.1  # seconds of each rank, relative to rank 0's
PER_SEQUENCE, ONCE = 3e-3, 5e-4  # seconds of one sequence, and of a backward pass
BESIDE = 1e-4  # seconds by which backward is slower while an all-reduce runs
LATE = 0.4  # seconds by which rank 2 is late, before it begins to measure


def of_ranks(world_size):
    return SPEEDS[:world_size]


class Backward:
    """Computes by the clock; its repeats differ, and one rank is slow in each.

    ``beside``: seconds more while an all-reduce runs.
    """

    def __init__(self, clock, rank, per_sequence=PER_SEQUENCE, beside=0.0):
        self.clock, self.speed, self.per_sequence = clock, SPEEDS[rank], per_sequence
        self.beside = beside
        self.calls, self.sequences = 0, []

    def __call__(self, sequences):
        self.calls += 1
        self.sequences.append(sequences)
        warms_up = 2.0 if self.calls == 1 else 0.0
        seconds = ONCE + self.per_sequence * sequences
        if self.clock.is_sending:
            seconds += self.beside
        self.clock.compute(self.speed * seconds + warms_up)


def over(exercise, rank, link=LINK):
    return clocks.simulated(exercise, link, OFFSETS[rank])


# -- the time of the slowest rank -------------------------------------------------
WORK = [  # seconds of each call, rank by rank: the first one warms up
    [3.0, 0.5, 0.2, 0.4, 0.4],
    [9.0, 0.3, 0.7, 0.5, 0.9],
    [0.1, 0.4, 0.15, 0.35, 0.6],
    [5.0, 0.2, 0.3, 0.3, 0.8],
]


def mistaken_slowest(rank, rows):
    """What other ways to measure the work give, on this rank."""
    barrier = LINK.collective("barrier", 0, len(rows))
    own, calls = rows[rank][1:], list(zip(*rows, strict=True))
    leasts = [min(row[1:]) for row in rows]
    of_this_rank = "this rank's own time: gather those of all ranks"
    if min(own) == max(leasts):  # on this rank both mistakes look alike
        of_this_rank = (
            "this rank's own time, or the largest of the ranks' least times: gather "
            "all, and take the slowest rank of each repeat first"
        )
    every, counted = [max(call) for call in calls], [max(call) for call in calls[1:]]
    means = [statistics.mean(call) for call in calls[1:]]
    waited = [
        max(max(last) - own + work for own, work in zip(last, now, strict=True))
        for last, now in itertools.pairwise(calls)
    ]
    return {
        "the time with the barrier: read the clock after it": min(waited) + barrier,
        "the time with a barrier after the work: read the clock before it": (
            min(counted) + barrier
        ),
        "the least time of any rank, not the slowest rank's": min(leasts),
        of_this_rank: min(own),
        "rank 0's time, and not the slowest rank's": min(rows[0][1:]),
        "the mean of the slowest rank's times: take the least of the repeats": (
            statistics.mean(counted)
        ),
        "the median of the slowest rank's times: take the least of the repeats": (
            statistics.median(counted)
        ),
        "the largest of all times: take the least of the repeats": max(counted),
        "the sum of the repeats": sum(counted),
        "the mean, with the first call, which warms up": statistics.mean(every),
        "the least mean of the ranks, not the slowest rank's time": min(means),
        "the mean over the ranks of their least times": statistics.mean(leasts),
        "the largest of the ranks' least times: take the slowest rank of each repeat "
        "first": max(leasts),
        "the first call, which doesn't count": every[0],
        "the largest of all calls, with the one that warms up": max(every),
        "milliseconds": min(counted) * 1e3,
    }


def same_seconds(found, right, mistaken, what):
    expect.that(found is not None, f"{what}: is None: is a `return` missing?")
    is_number = isinstance(found, numbers.Real)
    expect.that(is_number, f"{what}: is {found!r}, expected a number of seconds")
    if abs(found - right) <= CLOCK_TICK:
        return expect.that(True, what)
    for words, value in mistaken.items():
        differs = abs(value - right) > CLOCK_TICK
        alike = differs and abs(found - value) <= CLOCK_TICK
        expect.that(not alike, f"{what}: is {words}")
    expect.that(False, f"{what}: is {found:.6g} s, expected {right:.6g} s")


@pytest.mark.ranks(3, 4)
def test_time_of_the_slowest_rank(exercise, rank, world_size):
    """The slowest rank of each repeat, then the least, equal on all ranks."""
    rows = WORK[:world_size]
    called = []
    with over(exercise, rank) as clock:

        def work():
            seconds = rows[rank][len(called) % len(rows[rank])]
            called.append(seconds)
            clock.compute(seconds)

        clock.sleep(LATE if rank == 2 else 0.0)
        found = exercise.slowest_seconds(work, 4)
    right = min(max(call) for call in list(zip(*rows, strict=True))[1:])
    calls = f"work was called {len(called)} times for 4 repeats, expected 5"
    mistaken = mistaken_slowest(rank, rows)
    same_seconds(found, right, mistaken, "the time of the slowest rank")
    expect.that(len(called) >= 5, calls)


@pytest.mark.ranks(3)
def test_late_rank_delays_no_time(exercise, rank, world_size):
    """In each call another rank is late; the next time doesn't begin before it."""
    bucket = torch.zeros(NUMEL)
    with over(exercise, rank) as clock:
        calls = itertools.count()

        def work():
            dist.all_reduce(bucket)
            late = next(calls) % world_size == rank
            clock.sleep(LATE if late else 0.0)

        found = exercise.slowest_seconds(work, 3)
    one = LINK.collective("all_reduce", bucket.nbytes, world_size)
    barrier = LINK.collective("barrier", 0, world_size)
    right = one + LATE
    mistaken = {
        "the time with the wait for a rank that was late before: a barrier before each "
        "repeat lets them begin together": one + 2 * LATE,
        "the time with the barrier: read the clock after it": one + 2 * LATE + barrier,
        "the time of a rank that wasn't late: take the slowest rank's": one,
        "the time of a slower repeat: the fastest one waited for a rank that was late "
        "before, so put a barrier before each repeat": LINK.slower[0] * one + LATE,
    }
    same_seconds(found, right, mistaken, "the time of an all-reduce, then a late rank")


# -- a step ---------------------------------------------------------------------
@pytest.mark.ranks(3, 4)
def test_step_overlaps(exercise, rank, world_size):
    """A step takes as long as the longer one of backward and the all-reduce."""
    link = clocks.Link(2e-4, 1 / 1.5e6)
    sent = link.collective("all_reduce", 4 * NUMEL, world_size)
    for sequences in (1, 8):
        bucket = torch.full((NUMEL,), float(rank + 1))
        with over(exercise, rank, link) as clock:
            backward = Backward(clock, rank)
            backward.calls = 1  # it's warm
            start = clock.now
            exercise.step(backward, sequences, bucket)
            seconds = clock.now - start
        what = f"a step of {sequences} sequence(s)"
        expect.that(
            backward.sequences == [sequences],
            f"{what} called backward with {backward.sequences}, expected once, "
            f"with {sequences}",
        )
        computed = SPEEDS[rank] * (ONCE + PER_SEQUENCE * sequences)
        total = world_size * (world_size + 1) / 2
        held = bucket.clone()  # it may still change where no rank waits
        summed = bool((held == total).all())
        wrong = held[(held != total).long().argmax()]
        expect.that(
            summed,
            f"{what}: the bucket holds {float(wrong):g} on rank {rank}, expected "
            f"{total:g}, the sum over the ranks: is it reduced in place, with SUM, "
            "and does `step` wait for that?",
        )
        right = max(computed, sent)
        after = max(SPEEDS[r] for r in range(world_size))
        after = sent + after * (ONCE + PER_SEQUENCE * sequences)
        one_by_one = (
            "the time of both, one after the other: backward begins only when the "
            "all-reduce has ended, or the other way round"
        )
        if abs(seconds - right) <= CLOCK_TICK:
            expect.that(True, what)
            continue
        for value in (computed + sent, after):
            expect.that(abs(seconds - value) > CLOCK_TICK, f"{what}: took {one_by_one}")
        expect.that(
            abs(seconds - computed) > CLOCK_TICK,
            f"{what}: took backward alone: does it wait for the all-reduce?",
        )
        expect.that(False, f"{what}: took {seconds:.6g} s, expected {right:.6g} s")


# -- the fewest sequences -------------------------------------------------------
CHOICES = [1, 2, 3, 4, 6, 8, 16]


def sent_seconds(world_size, numel):
    """What repeats of LINK have as their least."""
    return LINK.collective("all_reduce", 4 * numel, world_size)


def fewest(
    world_size,
    numel,
    choices=tuple(CHOICES),
    *,
    of_speeds=max,
    factor=1.01,
    work=1.0,
    take=min,
    together=max,
    least=1.0,
):
    """The fewest sequences; the keywords are what goes wrong."""
    hidden = []
    for sequences in choices:
        alone = ONCE + PER_SEQUENCE * sequences
        alone *= of_speeds(of_ranks(world_size)) * work
        sent = sent_seconds(world_size, numel) * least
        if together(sent, alone) <= factor * alone:
            hidden.append(sequences)
    return take(hidden) if hidden else None


MISTAKEN_FEWEST = {
    "the largest number that hides it were wanted: it's the first one": {"take": max},
    "each rank compared its own times, not the slowest rank's": {"of_speeds": min},
    "rank 0's times were compared": {"of_speeds": lambda speeds: speeds[0]},
    "the mean of the ranks' times were compared": {
        "of_speeds": lambda speeds: sum(speeds) / len(speeds)
    },
    "a step lasted as long as backward and the all-reduce together": {
        "together": operator.add
    },
    "backward could hide half of the all-reduce": {"least": 2.0},
    "an all-reduce twice as long as backward were hidden": {"work": 2.0},
    "the limit were 10 %, not 1 %": {"factor": 1.1},
    "the all-reduce took as long as in the mean of the repeats": {
        "least": statistics.mean(LINK.slower)
    },
    "the all-reduce took as long as in the longest repeat": {"least": max(LINK.slower)},
}


@pytest.mark.ranks(2, 3, 4, limit=20)
def test_fewest_sequences_that_hide_it(exercise, rank, world_size):
    """Of small and of large buckets, and of one that nothing hides."""
    cases = [(world_size, numel) for numel in (10, 1000, 2100, 3400, 50_000)]
    found = []
    for _, numel in cases:
        choices = list(CHOICES)
        with over(exercise, rank) as clock:
            backward, bucket = Backward(clock, rank), torch.zeros(numel)
            found.append(exercise.hidden_from(backward, choices, bucket, 3))
        expect.equal(choices, CHOICES, "the choices, afterwards")
    cause = variants.cause(found, cases, fewest, MISTAKEN_FEWEST, most=1)
    for sequences, case in zip(found, cases, strict=True):
        right, what = (
            fewest(*case),
            f"a bucket of {case[1]:,} numbers on {case[0]} ranks",
        )
        words = f"{what}: is {sequences}, expected {right}"
        expect.that(sequences == right, words, cause=cause)


@pytest.mark.ranks(2, 3)
def test_backward_is_slower_beside_an_all_reduce(exercise, rank, world_size):
    """A step may take longer than backward alone, though the all-reduce is short."""
    with over(exercise, rank) as clock:
        backward, bucket = Backward(clock, rank, beside=BESIDE), torch.zeros(10)
        found = exercise.hidden_from(backward, list(CHOICES), bucket, 3)
    right = next(n for n in CHOICES if 0.01 * (ONCE + PER_SEQUENCE * n) >= BESIDE)
    told = f"where an all-reduce slows backward down: is {found}, expected {right}: "
    expect.that(
        found == right,
        told + "compare a whole step's time with backward's alone, of which it may be "
        "1 % longer",
    )
