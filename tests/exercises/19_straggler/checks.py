"""Checks of exercises/19_straggler.py: a rank is slow, late by chance, or neither."""

import copy
import random
from statistics import mean, median, median_high, median_low

import pytest
import torch
import torch.distributed as dist

from workshop.grader import clocks, expect, variants

expect.nothing_is_averaged()

LINK = clocks.Link(1e-3, 1e-8, first=0.7)
OFFSETS = 5.0, 91.0, 17.0, 3.0  # what the ranks' clocks show at the beginning
PARTS = "data", "compute", "waiting"


def over(exercise, rank):
    return clocks.simulated(exercise, LINK, OFFSETS[rank])


# -- one step ---------------------------------------------------------------------
DATA = 0.2, 0.05, 0.4, 0.1  # seconds of each rank
COMPUTE = 0.3, 0.9, 0.1, 0.35
MISTAKEN_STEP = {
    "compute": {
        "the time of loading and computing: read the clock between the two": (
            lambda data, compute, waiting: data + compute
        ),
        "the time of loading": lambda data, compute, waiting: data,
        "the time of computing and waiting: read the clock between the two": (
            lambda data, compute, waiting: compute + waiting
        ),
    },
    "data": {
        "the time of computing": lambda data, compute, waiting: compute,
        "the time of the whole step": lambda data, compute, waiting: (
            data + compute + waiting
        ),
    },
    "waiting": {
        "the time of the whole step: read the clock before the all-reduce": (
            lambda data, compute, waiting: data + compute + waiting
        ),
        "the time of computing and waiting: read the clock between the two": (
            lambda data, compute, waiting: compute + waiting
        ),
        "the time of computing": lambda data, compute, waiting: compute,
    },
}


@pytest.mark.ranks(3, 4)
def test_time_of_the_parts(exercise, rank, world_size):
    """Loading, computing, and the all-reduce with its wait for the last rank."""
    gradients = torch.full((50,), rank + 1.0, dtype=torch.float64)
    given = []
    with over(exercise, rank) as clock:
        batch = torch.arange(3)

        def load():
            clock.sleep(DATA[rank])
            return batch

        def compute(of):
            given.append(of)
            clock.compute(COMPUTE[rank])

        found = exercise.time_step(load, compute, gradients)
        lasted = clock.now
    expect.that(
        isinstance(found, dict) and set(found) == set(PARTS),
        f"time_step returned {found!r}; expected a dict of {', '.join(PARTS)}",
    )
    expect.that(
        len(given) == 1 and given[0] is batch,
        f"compute was called {len(given)} times; expected once, with the loaded batch",
    )
    total = torch.full_like(gradients, world_size * (world_size + 1) / 2)
    expect.close(gradients, total, "the gradients, summed in place over all ranks")
    own = DATA[rank], COMPUTE[rank]
    last = max(map(sum, zip(DATA[:world_size], COMPUTE[:world_size], strict=True)))
    sent = LINK.collective("all_reduce", gradients.nbytes, world_size) + LINK.first
    seconds = (*own, last - sum(own) + sent)
    slack = lasted - sum(seconds)  # of a barrier in front, which may be timed, or not
    for part, right in zip(PARTS, seconds, strict=True):
        what = f'"{part}", in seconds'
        more = found[part] - right
        if part == "waiting" and -1e-9 <= more <= slack + 1e-9:
            expect.that(True, what)
            continue
        mistaken = {
            words: rule(*seconds) for words, rule in MISTAKEN_STEP[part].items()
        }
        if part == "waiting":
            mistaken["no time of the all-reduce: read the clock when it's done"] = 0.0
            mistaken["the wait in a barrier: the all-reduce belongs to it"] = (
                right - sent + slack
            )
        expect.close(found[part], right, what, atol=2e-9, mistaken=mistaken)


# -- what is typical --------------------------------------------------------------
def typical_of(steps, part, *, first=1, last=None, middle=median, only=None):
    """The seconds of a part; the keywords are what goes wrong."""
    return middle([step[only or part] for step in steps[first:last]])


MISTAKEN_TYPICAL = {
    "the first step counted, too": {"first": 0},
    "the last step were left out, and not the first": {"first": 0, "last": -1},
    "the last step were left out, too": {"last": -1},
    "the first two steps were left out": {"first": 2},
    "the mean were taken, not the median": {"middle": mean},
    "the sum were taken, not the median": {"middle": sum},
    "the smallest value were taken, not the median": {"middle": min},
    "the largest value were taken, not the median": {"middle": max},
    "the first of the sorted steps were left out, not the first of the job": {
        "first": 0,
        "middle": lambda seconds: median(sorted(seconds)[1:]),
    },
    "the middle of the steps were taken without sorting them": {
        "middle": lambda seconds: seconds[len(seconds) // 2]
    },
    "of an even number, the smaller one of the two in the middle were the median": {
        "middle": median_low
    },
    "of an even number, the larger one of the two in the middle were the median": {
        "middle": median_high
    },
    '`part` were always "data"': {"only": "data"},
    '`part` were always "compute"': {"only": "compute"},
    '`part` were always "waiting"': {"only": "waiting"},
}


def steps_of(seed, rank, count):
    """Steps of one rank: the first one is slow, and some are late by chance."""
    draw = random.Random(f"{seed} {rank}")
    steps = [{part: draw.uniform(0.1, 0.9) for part in PARTS} for _ in range(count)]
    for part in PARTS:
        steps[0][part] += draw.choice((9.0, -0.09))
        steps[2][part] += 6.0
        steps[-1][part] += draw.choice((3.0, 0.0))
    return steps


@pytest.mark.ranks(3, 4)
def test_typical_of_all_ranks(exercise, rank, world_size, seed):
    """Every rank gets the medians of all ranks, without the first steps."""
    for count in (6, 7):  # the median of an even number, too
        everyone = [steps_of(seed, other, count) for other in range(world_size)]
        given = copy.deepcopy(everyone[rank])
        found = exercise.typical_of_ranks(given)
        expect.equal(given, everyone[rank], "the steps of this rank, afterwards")
        what = f"the typical times of {count} steps"
        same_typical(found, everyone, rank, what)


def same_typical(found, everyone, rank, what):
    words = f"{what}: is None on rank {rank}, and every rank needs them"
    expect.that(found is not None, words)
    is_list = isinstance(found, list) and all(isinstance(one, dict) for one in found)
    expect.that(is_list, f"{what}: expected a list of dicts, one for each rank")
    expect.equal(len(found), len(everyone), f"{what}: the number of ranks")
    expect.that(
        all(set(one) == set(PARTS) for one in found),
        f"{what}: each rank has {', '.join(PARTS)}",
    )
    cases = [(steps, part) for steps in everyone for part in PARTS]
    seconds = [one[part] for one in found for part in PARTS]
    own = [(everyone[rank], part) for _ in everyone for part in PARTS]
    cause = variants.cause(seconds, cases, typical_of, MISTAKEN_TYPICAL)
    if not cause and not variants.cause(seconds, cases, typical_of, {}):
        local = variants.cause(seconds, own, local_typical, {LOCAL: {"wrong": True}})
        cause = local
    for number, (value, case) in enumerate(zip(seconds, cases, strict=True)):
        which, part = divmod(number, len(PARTS))
        right = typical_of(*case)
        name = f'{what}: "{PARTS[part]}" of rank {which}'
        expect.close(value, right, name, atol=1e-6, rtol=1e-6, cause=cause)


LOCAL = "each rank had its own times alone: gather those of all ranks"


def local_typical(steps, part, *, wrong=False):
    return typical_of(steps, part) if wrong else None


# -- which rank is slow -------------------------------------------------------------
def slow_of(
    ranks,
    *,
    by="waiting",
    most=False,
    among="others",
    of_others=median,
    parts=PARTS,
    share=0.1,
    tenth_of="own",
    border_counts=False,
    always=False,
    works_at=(),
):
    """The slow rank, or None; the keywords are what goes wrong."""
    seconds = [each[by] for each in ranks]
    slow = seconds.index(max(seconds) if most else min(seconds))
    if works_at:
        work = [sum(each[part] for part in works_at) for each in ranks]
        slow = work.index(max(work))
    own, others = seconds[slow], seconds[:slow] + seconds[slow + 1 :]
    asked = {
        "others": others,
        "all": seconds,
        "different": [other for other in others if other != own],
    }
    if not asked[among]:
        return None
    more = of_others(asked[among]) - own
    steps = [sum(each[part] for part in parts) for each in ranks]
    tenth = share * steps[slow]
    if tenth_of == "others":
        tenth = share * median(steps[:slow] + steps[slow + 1 :])
    if most:
        more = -more
    holds_up = more > tenth or (border_counts and more == tenth)
    return slow if always or holds_up else None


MISTAKEN_SLOW = {
    "some rank were always slow: it is None if none holds up the others": {
        "always": True
    },
    "the slow rank were the one that waits most": {"most": True},
    "some rank were always slow, and it were the one that waits most": {
        "always": True,
        "most": True,
    },
    "some rank were always slow, and it were the one that computes most": {
        "by": "compute",
        "always": True,
        "most": True,
    },
    "the slow rank were the one that computes most": {"by": "compute", "most": True},
    "the slow rank were the one that loads longest": {"by": "data", "most": True},
    "the rank that computes most were compared, not the one that waits least": {
        "works_at": ("compute",)
    },
    "the rank that loads longest were compared, not the one that waits least": {
        "works_at": ("data",)
    },
    "the rank that loads and computes longest were compared, not the one that waits "
    "least": {"works_at": ("data", "compute")},
    "the rank itself were one of the others": {"among": "all"},
    "others that wait for just as long didn't count": {"among": "different"},
    "the mean of the others were taken, not the median": {"of_others": mean},
    "the one of the others that waits least were taken, not the median": {
        "of_others": min
    },
    "the one of the others that waits most were taken, not the median": {
        "of_others": max
    },
    "waiting were no part of the step": {"parts": ("data", "compute")},
    "loading were no part of the step": {"parts": ("compute", "waiting")},
    "computing were no part of the step": {"parts": ("data", "waiting")},
    "it were a tenth of the waiting, not of the step": {"parts": ("waiting",)},
    "it were a tenth of the other ranks' steps, not of its own": {"tenth_of": "others"},
    "any more waiting were enough, and not a tenth of the step": {"share": 0.0},
    "no rank ever held up the others: is the rank that waits least compared, and is "
    "its waiting subtracted from that of the others?": {"share": 100.0},
    "exactly a tenth were enough: it must be more": {"border_counts": True},
}


def same_rank(found, right, what, cause):
    """As ``expect.equal``; None is an answer here, and no missing return."""
    none = f"{what}: is None, not {right}"
    expect.that(found is not None or right is None, none, cause=cause)
    expect.equal(found, right, what, cause=cause)


def waits_of(waits, step):
    """Ranks of which only the waiting differs."""
    return [step | {"waiting": seconds} for seconds in waits]


def someone_is_slow(seed):
    """(what is asked, ranks, slow rank): all but the waiting differs by chance, too."""
    found = []
    for slow in range(5):
        for part in ("compute", "data"):
            draw = random.Random(f"{seed} {slow} {part}")
            ranks = [{"data": 0.05, "compute": 0.2} for _ in range(5)]
            for each in ranks:
                each["data"] *= draw.uniform(0.98, 1.02)
                each["compute"] *= draw.uniform(0.98, 1.02)
            ranks[slow][part] += 0.1
            end = max(sum(each.values()) for each in ranks) + 0.01
            ranks = [each | {"waiting": end - sum(each.values())} for each in ranks]
            found.append((f"the slow rank, by {part}", ranks, slow))
    return found


def near_the_border():
    """(what is asked, ranks, slow rank or None)."""
    found = []
    for waits, compute in (
        ([0.011, 0.013, 0.012, 0.01, 0.014], 0.4),
        ([1.0, 0.0], 5.0),
        ([0.1, 0.1, 0.35], 0.4),
        ([3.0] * 2, 1.0),
    ):
        step = {"data": 5.0 if compute > 1 else 1.0, "compute": compute}
        what = f"the slow rank, if ranks wait {waits} s, and work {step}"
        found.append((what, waits_of(waits, step), None))
    step = {"data": 0.4, "compute": 1.0}
    several = (0.79, None), (0.81, 1), (0.75, None), (0.63, None), (0.95, 1)
    for others, right in several:
        for waits in (
            [others, 0.6],
            [others, 0.6, others, 1.9],
            [0.61, 0.6, others, others],  # another one that waits for about as little
        ):
            what = f"the slow rank, if ranks wait {waits} s"
            found.append((what, waits_of(waits, step), right))
    return found


def which_is_slow(exercise, every):
    cases = [(ranks,) for _, ranks, _ in every]
    cause = variants.cause_in(exercise.slow_rank, cases, slow_of, MISTAKEN_SLOW)
    for what, ranks, slow in every:
        before = copy.deepcopy(ranks)
        same_rank(exercise.slow_rank(ranks), slow, what, cause)
        expect.that(ranks == before, "slow_rank changed the caller's times")


@pytest.mark.ranks(1)
def test_slow_rank(exercise, seed):
    """The rank that waits least, if it holds up the others; the border is a tenth."""
    every = someone_is_slow(seed) + near_the_border()
    which_is_slow(exercise, every)


# -- a job in which a rank is slow, or none ------------------------------------------
STEPS = 9


class Training:
    """What one rank does; ``slow`` is late in each step, another one in a few."""

    def __init__(self, clock, rank, world_size, slow, part):
        self.clock, self.rank, self.step = clock, rank, 0
        self.slow, self.part = slow == rank, part
        others = [other for other in range(world_size) if other != slow]
        self.late = others[-1] == rank
        self.first = (
            9.0 if rank != slow else 1.0
        )  # all are slow, and the slow one least
        self.batches = []

    def load(self):
        self.clock.sleep(0.05 + 0.1 * (self.slow and self.part == "data"))
        return self.step

    def compute(self, batch):
        self.batches.append(batch)
        seconds = 0.2 + 0.1 * (self.slow and self.part == "compute")
        if self.step == 0:
            seconds += self.first
        if self.late and self.step in (2, 3, 7):
            seconds += 6.0
        self.step += 1
        self.clock.compute(seconds)


@pytest.mark.ranks(3, 4, limit=20)
def test_straggler_of_a_running_job(exercise, rank, world_size):
    """Measured step by step, and found on every rank: which one is slow, and why."""
    cases = [(slow, part) for slow in range(world_size) for part in ("data", "compute")]
    for slow, part in [*cases, (None, "")]:
        gradients = torch.zeros(4, dtype=torch.float64)
        with over(exercise, rank) as clock:
            training = Training(clock, rank, world_size, slow, part)
            found = exercise.find_straggler(
                training.load, training.compute, gradients, STEPS
            )
        right = None if slow is None else (slow, part)
        what = f"the straggler of {world_size} ranks"
        expect.equal(training.batches, list(range(STEPS)), "the batches of this rank")
        told = f"{what}: is {found}, expected {right}"
        expect.that(found == right, told)
    dist.barrier()
