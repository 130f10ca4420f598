"""Checks of exercises/17_three_traces.py: traces of other seeds, sizes and causes."""

import json
import random
from pathlib import Path

import pytest

from workshop.grader import expect, variants

TICK = 0.5  # microseconds; every moment is a whole number of ticks
SLOW = ("slow compute", "slow data", "slow gap")
CAUSES = (
    "data",
    "communication",
    *SLOW,
    "hidden",
    "hidden on one",
    "both",
    "hidden on last",
)


def event(rank, name, begin, end, cat="cpu_op"):
    times = {"ts": 4000 + begin * TICK, "dur": (end - begin) * TICK}
    return {"ph": "X", "pid": rank, "tid": 1, "cat": cat, "name": name} | times


def operator(rank, begin, end):
    """An operator with another one inside, and one that begins in it."""
    middle = (begin + end) // 2
    return [
        event(rank, "aten::linear", begin, middle + 1),
        event(rank, "aten::addmm", begin + 1, middle - 1),
        event(rank, "aten::relu", middle, end),
    ]


def collective(trace, starts, takes):
    """All ranks end it together, the last one having started; returns when."""
    end = max(starts) + takes
    for rank, begin in enumerate(starts):
        trace.append(event(rank, "c10d::allreduce_", begin, begin + 2))
        trace.append(event(rank, "gloo:all_reduce", begin, end, "user_annotation"))
    return end


def load(trace, rank, begin, ticks):
    """A batch, with an event of it and an operator inside; returns when it ends."""
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    for inside in (0, 1):
        end = begin + ticks - inside
        trace.append(event(rank, name, begin + inside, end, "user_annotation"))
    trace.append(event(rank, "aten::stack", begin + ticks // 2, begin + ticks))
    return begin + ticks


def record(cause, seed):
    """(trace, ranks) of a few steps with two all-reduces each, the first one hidden."""
    draw = random.Random(f"{cause} {seed}")
    ranks, late = draw.randint(3, 5), None
    late = draw.randrange(ranks) if cause.startswith("slow") else None
    whose = {
        "hidden": range(ranks),
        "hidden on one": [0],
        "hidden on last": [ranks - 1],
    }
    hides = whose.get(cause, [])
    takes = {"communication": 500, "both": 300}.get(cause, 280 if hides else 30)
    loads = {"data": 400, "both": 400}.get(cause, 150 if hides else 20)
    trace, now = [], 0
    for _ in range(draw.randint(2, 4)):
        handed, ready = [], []
        for rank in range(ranks):
            more = {cause[5:]: draw.randint(450, 550)} if rank == late else {}
            at = load(trace, rank, now, loads + draw.randrange(9) + more.get("data", 0))
            at += more.get("gap", 0)
            forward = 90 + draw.randrange(9) + more.get("compute", 0)
            trace += operator(rank, at, at + forward)
            handed.append(at + forward + 3)
            ready.append(at + forward + (330 if rank in hides else 60))
            trace += operator(rank, handed[-1] + 2, ready[-1])
        first = collective(trace, handed, takes)
        second = 30 if hides else takes
        begin = [max(first, mine) + draw.randrange(9) for mine in ready]
        now = collective(trace, begin, second) + 5
    draw.shuffle(trace)
    return trace, ranks


def in_turns():
    """(trace, ranks): each is late once, so that all wait for long; rank 2 for least"""
    trace, now = [], 0
    for late, ticks in ((0, 50), (1, 50), (2, 60)):
        starts = [now + ticks * (rank == late) for rank in range(3)]
        now = collective(trace, starts, 10)
    return trace, 3


def hidden_on_one_that_waits():
    """(trace, ranks): rank 1 starts last, and what rank 0 is sent then is all hidden"""
    trace = []
    collective(trace, [0, 100, 20], 300)
    return trace + operator(0, 100, 400), 3


def operators_in_data():
    """(trace, ranks): loading takes longest, and operators run in half of it"""
    trace, now = [], 0
    for _ in range(3):
        starts = [load(trace, rank, now, 200) for rank in range(3)]
        now = collective(trace, starts, 150)
    return trace, 3


def hidden_on_two_of_three():
    """(trace, ranks): rank 1 alone hides nothing, and all ranks load for long"""
    trace = []
    starts = [load(trace, rank, 0, 150) for rank in range(3)]
    collective(trace, starts, 200)
    for rank in (0, 2):
        trace += operator(rank, starts[rank], starts[rank] + 190)
    return trace, 3


def paint(
    trace,
    rank,
    ranks,
    *,
    hidden_by=("data", "work"),
    latest=max,
    capped=True,
    merged=True,
):
    """Microseconds of (data, exposed before, exposed after), by painting every ns."""

    def times(wanted, whose):  # in whole nanoseconds
        own = [e for e in trace if e["pid"] == whose and wanted(e)]
        whole = [(round(1000 * e["ts"]), round(1000 * e["dur"])) for e in own]
        return sorted((begin, begin + lasts) for begin, lasts in whole)

    data = times(lambda e: e["name"][:5] == "enume", rank)
    work = times(lambda e: e["cat"] == "cpu_op" and e["name"][:5] != "c10d:", rank)
    calls = [times(lambda e: e["name"][:5] == "gloo:", r) for r in range(ranks)]
    last = [latest(begin for begin, _ in each) for each in zip(*calls, strict=True)]
    cuts = [
        max(begin, min(end, late) if capped else late)
        for (begin, end), late in zip(calls[rank], last, strict=True)
    ]
    before = [(begin, cut) for (begin, _), cut in zip(calls[rank], cuts, strict=True)]
    after = [(cut, end) for (_, end), cut in zip(calls[rank], cuts, strict=True)]
    edges = sorted({m for span in data + work + before + after for m in span})
    place = {moment: number for number, moment in enumerate(edges)}

    def painted(found):
        return {n for begin, end in found for n in range(place[begin], place[end])}

    def length(numbers):
        return sum(edges[n + 1] - edges[n] for n in numbers) / 1000

    found = {"data": painted(data), "work": painted(work)}
    busy = set().union(*(found[kind] for kind in hidden_by))
    exposed = painted(before) - busy, painted(after) - busy
    loading = length(painted(data))
    if not merged:
        loading = sum(end - begin for begin, end in data) / 1000
    return [loading, *map(length, exposed)]


def exposed_of(trace, rank, ranks, *, swapped=False, **options):
    """(before, after), rounded, so that they can be compared."""
    _, *both = paint(trace, rank, ranks, **options)
    return tuple(round(number, 2) for number in (both[::-1] if swapped else both))


MISTAKEN_EXPOSED = {
    "compute events hid nothing": {"hidden_by": ("data",)},
    "data events hid nothing": {"hidden_by": ("work",)},
    "nothing hid communication": {"hidden_by": ()},
    "the cut were where the first rank starts, not the last": {"latest": min},
    "a collective lasted beyond its end, up to where the last rank starts": {
        "capped": False
    },
    "the two stood in the other order": {"swapped": True},
}


def costs_of(trace, ranks):
    """(name, rank) of the bottleneck, and what all three cost, as a text."""
    data, before, after = parts_of(trace, ranks)
    costs = {"data": min(data), "communication": min(after), "slow rank": max(before)}
    name = max(costs, key=costs.__getitem__)
    late = before.index(min(before)) if name == "slow rank" else None
    return (name, late), ", ".join(f"{k} {v:,.0f} us" for k, v in costs.items())


def parts_of(trace, ranks, **options):
    """(data, before, after), each of every rank."""
    parts = [paint(trace, rank, ranks, **options) for rank in range(ranks)]
    return tuple(zip(*parts, strict=True))


def choice(
    trace,
    ranks,
    *,
    data=min,
    sent=min,
    waited=max,
    pick=max,
    late=min,
    named=("slow rank",),
    whole=False,
    by_all=False,
    zero=True,
    **options,
):
    """(name, rank); the keywords are what goes wrong."""
    loads, before, after = parts_of(trace, ranks, **options)
    after = [sum(both) for both in zip(before, after, strict=True)] if whole else after
    costs = {
        "data": data(loads),
        "communication": sent(after),
        "slow rank": waited(before),
    }
    name = pick(costs, key=costs.__getitem__)
    waits = [sum(both) for both in zip(before, after, strict=True)]
    by = waits if by_all else list(before)
    place = by.index(late(by))
    told = name in named and (zero or place > 0)
    return name, place if told else None


MISTAKEN_CHOICES = {
    "each of the three cost the sum over the ranks": {
        "data": sum,
        "sent": sum,
        "waited": sum,
    },
    "data events inside other ones counted, too: merge them": {"merged": False},
    "data cost what the rank with most of it takes: it is the least": {"data": max},
    "data cost the sum over the ranks": {"data": sum},
    "communication cost what the rank with most of it takes: it is the least": {
        "sent": max
    },
    "communication cost the sum over the ranks": {"sent": sum},
    "a slow rank cost what the rank that waits least waits: it is the most": {
        "waited": min
    },
    "a slow rank cost the sum of all waiting": {"waited": sum},
    "waiting for the last rank were communication, too": {"whole": True},
    "the smallest cost were the bottleneck": {"pick": min},
    "the slow rank were the one that waits most: it waits least": {"late": max},
    "a slow rank cost how much longer the others wait than it does": {
        "waited": lambda before: max(before) - min(before)
    },
    "the slow rank were the one with the least communication in all": {"by_all": True},
    "rank 0 were no rank, as in `if rank`": {"zero": False},
    "communication were all of it, waiting and hidden, too": {
        "whole": True,
        "hidden_by": (),
    },
    "no rank were named": {"named": ()},
    "a rank were named for communication and data, too": {
        "named": ("data", "communication", "slow rank")
    },
    "hidden communication cost time, too": {"hidden_by": ()},
    "communication were not hidden by compute events": {"hidden_by": ("data",)},
    "communication were not hidden by data events": {"hidden_by": ("work",)},
}


def check_exposed(exercise, cases):
    """``cases``: (what, trace, rank, ranks)"""
    found = []
    for what, *case in cases:
        both = exercise.exposed(*case)
        pair = isinstance(both, tuple) and len(both) == 2
        expect.that(pair, f"{what} is {both!r}, expected two numbers: (before, after)")
        found.append(both)
    numbers = [tuple(round(float(x), 2) for x in both) for both in found]
    plain = [tuple(case) for _, *case in cases]
    cause = variants.cause(numbers, plain, exposed_of, MISTAKEN_EXPOSED)
    why = expect.as_if(cause)
    for both, (what, *case) in zip(found, cases, strict=True):
        for number, name, right in zip(
            both, ("before", "after"), paint(*case)[1:], strict=True
        ):
            told = f"{name} of {what}: got {number:g}, expected {right:g}{why}"
            expect.that(abs(number - right) <= 0.01, told)


@pytest.mark.ranks(1, init=False)
def test_merge(exercise):
    """Spans that overlap become one, and the others stay as they are."""
    for found, merged, how in (
        ([(1.0, 3.0), (5.0, 6.0)], [(1.0, 3.0), (5.0, 6.0)], "apart"),
        ([(1.0, 4.0), (3.0, 6.0)], [(1.0, 6.0)], "that overlap"),
        ([(1.0, 9.0), (2.0, 3.0), (7.0, 8.0)], [(1.0, 9.0)], "inside another one"),
        ([(7.0, 8.0), (1.0, 3.0), (2.0, 5.0)], [(1.0, 5.0), (7.0, 8.0)], "in disorder"),
        ([(1.0, 3.0), (2.0, 5.0), (4.0, 7.0)], [(1.0, 7.0)], "in a chain"),
        ([(1.0, 3.0), (3.0, 6.0)], [(1.0, 6.0)], "one of which ends where one begins"),
        ([], [], "of which there are none"),
    ):
        given = list(found)
        expect.equal(exercise.merge(given), merged, f"merge of spans {how}")
        expect.equal(given, found, "the list that merge was given")


@pytest.mark.ranks(1, init=False)
def test_exposed_of_one_collective(exercise):
    """One all-reduce that rank 2 starts last; meanwhile some compute, or load."""
    calls = [(0, 10, 100), (1, 30, 100), (2, 60, 100)]
    own = "user_annotation"
    trace = [event(rank, "gloo:all_reduce", *times, own) for rank, *times in calls]
    trace += operator(0, 20, 80)
    load(trace, 2, 70, 20)
    early = [*trace]
    early[1] = event(1, "gloo:broadcast", 30, 50, own)  # has sent, and has ended
    cases = [(f"rank {rank}", trace, rank, 3) for rank in range(3)]
    what = "a rank that ends before the last one starts"
    check_exposed(exercise, [*cases, (what, early, 1, 3)])


@pytest.mark.ranks(1, init=False)
def test_exposed_in_whole_traces(exercise, seed):
    """Several steps, some communication hidden behind operators, some not."""
    cases = []
    for cause in CAUSES:
        trace, ranks = record(cause, seed)
        cases += [
            (f"rank {rank} ({cause})", trace, rank, ranks) for rank in range(ranks)
        ]
    check_exposed(exercise, cases)


@pytest.mark.ranks(1, init=False)
def test_bottleneck(exercise, seed):
    """The largest cost of fresh traces, and the rank if one is slow."""
    drawn = [record(c, f"{seed} {number}") for c in CAUSES for number in range(2)]
    by_hand = [in_turns(), hidden_on_one_that_waits(), operators_in_data()]
    cases, found = [*drawn, *by_hand, hidden_on_two_of_three()], []
    for trace, ranks in cases:
        given = [dict(each) for each in trace]
        found.append(exercise.bottleneck(trace, ranks))
        expect.equal(trace, given, "the trace that bottleneck was given")
    cause = variants.cause(found, cases, choice, MISTAKEN_CHOICES, most=1)
    for seen, case in zip(found, cases, strict=True):
        right, costs = costs_of(*case)
        expect.equal(seen, right, f"the bottleneck ({costs})", cause=cause)


TRACES = Path(__file__).resolve().parents[3] / "docs" / "traces"
RECORDED = {  # what tools/record_traces.py made slow
    "17_1.json": ("communication", None),
    "17_2.json": ("slow rank", 1),
    "17_3.json": ("data", None),
}


@pytest.mark.ranks(1, init=False)
def test_bottleneck_of_recorded_traces(exercise):
    """Those in docs/traces, each from a run that was slow for a known reason."""
    for file, cause in RECORDED.items():
        recorded = json.loads((TRACES / file).read_text())
        trace, ranks = recorded["traceEvents"], recorded["mergedRanks"]
        right, costs = costs_of(trace, ranks)
        assert right == cause, f"{file} is not what tools/record_traces.py wrote"
        found = exercise.bottleneck(trace, ranks)
        expect.equal(found, right, f"the bottleneck of docs/traces/{file} ({costs})")
