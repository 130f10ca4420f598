"""Checks of exercises/19_straggler.py: chance delays, a warm-up, no slow rank."""

import copy
import random
from statistics import mean, median, median_high, median_low

import pytest

from workshop.grader import expect, variants

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


def slow_of(
    times,
    *,
    first=1,
    middle=median,
    by="waiting",
    most=False,
    among="others",
    of_others=median,
    parts=("data", "compute", "waiting"),
    share=0.1,
    border_counts=False,
    always=False,
):
    """The slow rank, or None; the keywords are what goes wrong."""

    def of(rank, part):
        return typical_of(times[rank], part, first=first, middle=middle)

    seconds = [of(rank, by) for rank in range(len(times))]
    slow = seconds.index(max(seconds) if most else min(seconds))
    own, others = seconds[slow], seconds[:slow] + seconds[slow + 1 :]
    asked = {
        "others": others,
        "all": seconds,
        "different": [other for other in others if other != own],
    }
    if not asked[among]:
        return None
    more = of_others(asked[among]) - own
    tenth = share * sum(of(slow, part) for part in parts)
    if most:
        more = -more
    holds_up = more > tenth or (border_counts and more == tenth)
    return slow if always or holds_up else None


MISTAKEN_SLOW = {
    "some rank were always slow: it is None if none holds up the others": {
        "always": True
    },
    "the slow rank were the one that waits most": {"most": True},
    "the slow rank were the one that computes most": {"by": "compute", "most": True},
    "the slow rank were the one that loads longest": {"by": "data", "most": True},
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
    "any more waiting were enough, and not a tenth of the step": {"share": 0.0},
    "no rank ever held up the others": {"share": 100.0},
    "exactly a tenth were enough: it must be more": {"border_counts": True},
    "the first step counted, too": {"first": 0},
    "the mean of a rank's steps were taken, not the median": {"middle": mean},
}


def reason_of(
    times,
    slow,
    *,
    first=1,
    middle=median,
    of_others=median,
    among="others",
    compared="difference",
    always=None,
):
    """The part of which it has more; the keywords are what goes wrong."""
    more = {}
    for part in ("data", "compute"):
        every = [typical_of(steps, part, first=first, middle=middle) for steps in times]
        others = every[:slow] + every[slow + 1 :]
        asked = {"others": others, "all": every, "rank 0": every[:1]}
        asked["before"] = [every[slow - 1]]
        mixed = [steps for rank, steps in enumerate(times) if rank != slow]
        asked["mixed"] = [step[part] for steps in mixed for step in steps[first:]]
        usual = of_others(asked[among])
        more[part] = {
            "difference": every[slow] - usual,
            "size": abs(every[slow] - usual),
            "ratio": every[slow] / usual,
            "own": every[slow],
            "less": usual - every[slow],
        }[compared]
    return always or max(more, key=more.__getitem__)


MISTAKEN_REASONS = {
    "the reason were the larger part, whatever the others have": {"compared": "own"},
    "the two ratios were compared, not the differences": {"compared": "ratio"},
    "having less than the others were a reason, too": {"compared": "size"},
    "the reason were the part of which it has less": {"compared": "less"},
    "the slow rank were one of the others": {"among": "all"},
    "rank 0 stood for the others": {"among": "rank 0"},
    "the rank before it stood for the others": {"among": "before"},
    "the steps of all others were put together, not their typical values": {
        "among": "mixed"
    },
    "the mean of the others were taken, not the median": {"of_others": mean},
    "the smallest of the others were taken, not the median": {"of_others": min},
    "the largest of the others were taken, not the median": {"of_others": max},
    "the first step counted, too": {"first": 0},
    "the mean of a rank's steps were taken, not the median": {"middle": mean},
    'the reason were always "data"': {"always": "data"},
    'the reason were always "compute"': {"always": "compute"},
}


def same_rank(found, right, what, cause):
    """As ``expect.equal``; None is an answer here, and no missing return."""
    none = f"{what}: is None, not {right}"
    expect.that(found is not None or right is None, none, cause=cause)
    expect.equal(found, right, what, cause=cause)


def waits_of(waits, step, steps=4):
    """Ranks with one step again and again, of which only the waiting differs."""
    return [[step | {"waiting": seconds}] * steps for seconds in waits]


def someone_is_slow(seed):
    """(what is asked, times, slow rank)."""
    return [
        (f"the slow rank, by {part}", record(seed, slow, part), slow)
        for slow in range(RANKS)
        for part in ("compute", "data")
    ]


def near_the_border(seed):
    """(what is asked, times, slow rank or None)."""
    found = [("without a slow rank", record(seed), None)]
    for waits, compute in (
        ([1.0, 0.0], 5.0),
        ([0.1, 0.1, 0.35], 0.4),
        ([3.0] * 2, 1.0),
    ):
        step = {"data": 5.0 if compute > 1 else 1.0, "compute": compute}
        what = f"the slow rank, if ranks wait {waits} s, and work {step}"
        found.append((what, waits_of(waits, step, 3), None))
    step = {"data": 0.4, "compute": 1.0}
    for others, right in ((0.79, None), (0.81, 1), (0.75, None), (0.63, None)):
        for waits in (
            [others, 0.6],
            [others, 0.6, others, 1.9],
            [0.61, 0.6, others, others],  # another one that waits for about as little
        ):
            what = f"the slow rank, if ranks wait {waits} s"
            found.append((what, waits_of(waits, step), right))
    first, *others = ((0.0, 0.0, 1.2), (5.0, 0.79, 0.79), (5.0, 0.79, 0.79))
    times = [[step | {"waiting": s} for s in waits] for waits in (first, *others)]
    what = f"the slow rank, if the three steps of rank 0 wait {first} s"
    return [*found, (f"{what}, and the others' {others[0]} s", times, None)]


def why_slow(exercise, seed):
    """The cause of all wrong ranks, or ""."""
    every = someone_is_slow(seed) + near_the_border(seed)
    cases = [(times,) for _, times, _ in every]
    return variants.cause_in(exercise.slow_rank, cases, slow_of, MISTAKEN_SLOW)


def reasons(seed):
    """(what is asked, times, slow rank, reason)."""
    found = []
    for part in ("compute", "data"):
        for compute, data in ((0.2, 0.05), (0.05, 0.2)):
            what = f"the reason, with {compute} s of compute and {data} s of data"
            found.append((what, record(seed, 3, part, compute, data), 3, part))
    times = record(seed, 0, "data")
    medians = [median(s["data"] for s in steps) for steps in times]
    expect.that(medians[0] == max(medians), "the check itself is wrong")
    found.append(("the reason, of rank 0", times, 0, "data"))
    for part, data, compute in (
        ("data", (0.3, 0.1, 0.1, 0.7), (1.15, 1.0, 1.0, 1.0)),
        ("data", (0.3, 0.1, 0.1, 0.1, 0.1, 0.7), (1.15, 1.0, 1.0, 1.0, 1.0, 1.0)),
        ("compute", (0.05, 0.01, 0.01), (0.3, 0.2, 0.2)),
        ("compute", (0.1, 0.9, 0.9), (1.5, 1.0, 1.0)),  # less of one, more of the other
    ):
        ranks = zip(data, compute, strict=True)
        times = [[{"data": d, "compute": c, "waiting": 0.1}] * 3 for d, c in ranks]
        what = f"the reason of rank 0, if ranks load for {data} and compute {compute} s"
        found.append((what, times, 0, part))
    slow = [{"data": 0.4, "compute": 1.2, "waiting": 0.1}] * 4
    loads = ((0.1, 0.1, 0.1), (0.1, 0.4, 0.4), (0.1, 0.4, 0.4))
    others = [
        [{"data": d, "compute": 1.0, "waiting": 0.1} for d in (9.0, *own)]
        for own in loads
    ]
    what = "the reason, if the others' typical data times are 0.1, 0.4 and 0.4 s"
    what += ", and rank 0's is 0.4 s"
    found.append((what, [slow, *others], 0, "compute"))
    for seconds in ((5.0, 0.1, 0.5), (0.1, 0.1, 0.1, 0.1, 2.1)):
        slow = [{"data": s, "compute": 1.31, "waiting": 0.1} for s in seconds]
        other = [{"data": 0.1, "compute": 1.0, "waiting": 0.1}] * len(seconds)
        what = f"the reason, if the steps of rank 0 load for {seconds} s"
        found.append((what, [slow, other, other], 0, "compute"))
    for slow, part, data in (
        (2, "compute", (0.3, 0.1, 0.4, 0.3)),
        (0, "data", (0.4, 0.1, 0.1, 0.1, 0.3)),
    ):
        ranks = [{"data": d, "compute": 1.0, "waiting": 0.1} for d in data]
        ranks[slow]["compute"] = 1.2
        what = f"the reason of rank {slow}, if ranks load for {data} s"
        found.append((what, [[step] * 3 for step in ranks], slow, part))
    return found


@pytest.mark.ranks(1, init=False)
def test_typical(exercise):
    """The median of all steps but the first; an even number of steps, too."""
    seconds = (9.0, 0.2, 0.1, 7.0, 0.4)
    steps = [{"data": s, "compute": 1.0, "waiting": 2 * s} for s in seconds]
    cases = [(steps, "data"), (steps, "waiting"), (steps[:4], "data")]
    asked = exercise.typical, cases, typical_of, MISTAKEN_TYPICAL
    cause = variants.cause_in(*asked)
    given = copy.deepcopy(steps)
    found = exercise.typical(given, "data")
    expect.close(found, 0.3, "the typical data time", cause=cause)
    expect.equal(given, steps, "the steps that typical was given")
    found = exercise.typical(steps, "waiting")
    expect.close(found, 0.6, "the typical waiting", cause=cause)
    found = exercise.typical(steps[:4], "data")
    expect.close(found, 0.2, "of three steps, data", cause=cause)


@pytest.mark.ranks(1, init=False)
def test_slow_rank(exercise, seed):
    """The rank that waits least, in spite of chance delays of another one."""
    cause = why_slow(exercise, seed)
    for what, times, slow in someone_is_slow(seed):
        before = copy.deepcopy(times)
        same_rank(exercise.slow_rank(times), slow, what, cause)
        expect.that(times == before, "slow_rank changed the caller's times")


@pytest.mark.ranks(1, init=False)
def test_nobody_is_slow(exercise, seed):
    """If all wait about as long, it is None; the border is the median and a tenth."""
    cause = why_slow(exercise, seed)
    for what, times, slow in near_the_border(seed):
        same_rank(exercise.slow_rank(times), slow, what, cause)


@pytest.mark.ranks(1, init=False)
def test_reason(exercise, seed):
    """The part of which the slow rank has more, not the part that is largest."""
    every = reasons(seed)
    cases = [(times, slow) for _, times, slow, _ in every]
    # one mistake alone: with two possible values, two explain too much by chance
    asked = exercise.reason, cases, reason_of, MISTAKEN_REASONS
    cause = variants.cause_in(*asked, most=1)
    for what, times, slow, part in every:
        before = copy.deepcopy(times)
        expect.equal(exercise.reason(times, slow), part, what, cause=cause)
        expect.that(times == before, "reason changed the caller's times")
