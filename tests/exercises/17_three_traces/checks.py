"""Checks of exercises/17_three_traces.py: traces of other seeds, sizes and causes."""

import json
import random
from pathlib import Path

import pytest

from workshop.grader import expect

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


def paint(trace, rank, ranks):
    """Microseconds of (data, exposed before, exposed after), by painting every ns."""

    def times(wanted, whose):  # in whole nanoseconds
        own = [e for e in trace if e["pid"] == whose and wanted(e)]
        whole = [(round(1000 * e["ts"]), round(1000 * e["dur"])) for e in own]
        return sorted((begin, begin + lasts) for begin, lasts in whole)

    data = times(lambda e: e["name"][:5] == "enume", rank)
    work = times(lambda e: e["cat"] == "cpu_op" and e["name"][:5] != "c10d:", rank)
    calls = [times(lambda e: e["name"][:5] == "gloo:", r) for r in range(ranks)]
    last = [max(begin for begin, _ in each) for each in zip(*calls, strict=True)]
    cuts = [min(end, late) for (_, end), late in zip(calls[rank], last, strict=True)]
    before = [(begin, cut) for (begin, _), cut in zip(calls[rank], cuts, strict=True)]
    after = [(cut, end) for (_, end), cut in zip(calls[rank], cuts, strict=True)]
    edges = sorted({m for span in data + work + before + after for m in span})
    place = {moment: number for number, moment in enumerate(edges)}

    def painted(found):
        return {n for begin, end in found for n in range(place[begin], place[end])}

    def length(numbers):
        return sum(edges[n + 1] - edges[n] for n in numbers) / 1000

    busy = painted(data) | painted(work)
    exposed = painted(before) - busy, painted(after) - busy
    return [length(numbers) for numbers in (painted(data), *exposed)]


def costs_of(trace, ranks):
    """(name, rank) of the bottleneck, and what all three cost, as a text."""
    parts = [paint(trace, rank, ranks) for rank in range(ranks)]
    data, before, after = zip(*parts, strict=True)
    costs = {"data": min(data), "communication": min(after), "slow rank": max(before)}
    name = max(costs, key=costs.__getitem__)
    late = before.index(min(before)) if name == "slow rank" else None
    return (name, late), ", ".join(f"{k} {v:,.0f} us" for k, v in costs.items())


def check_exposed(exercise, trace, rank, ranks, what):
    found, expected = (
        exercise.exposed(trace, rank, ranks),
        paint(trace, rank, ranks)[1:],
    )
    pair = isinstance(found, tuple) and len(found) == 2
    expect.that(pair, f"{what} is {found!r}, expected two numbers: (before, after)")
    for number, name, right in zip(found, ("before", "after"), expected, strict=True):
        expect.close(number, right, f"{name} of {what}", atol=0.01)


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
    for rank in range(3):
        check_exposed(exercise, trace, rank, 3, f"rank {rank}")
    trace[1] = event(1, "gloo:broadcast", 30, 50, own)  # has sent, and has ended
    check_exposed(exercise, trace, 1, 3, "a rank that ends before the last one starts")


@pytest.mark.ranks(1, init=False)
def test_exposed_in_whole_traces(exercise, seed):
    """Several steps, some communication hidden behind operators, some not."""
    for cause in CAUSES:
        trace, ranks = record(cause, seed)
        for rank in range(ranks):
            check_exposed(exercise, trace, rank, ranks, f"rank {rank} ({cause})")


@pytest.mark.ranks(1, init=False)
def test_bottleneck(exercise, seed):
    """The largest cost of fresh traces, and the rank if one is slow."""
    drawn = [record(c, f"{seed} {number}") for c in CAUSES for number in range(2)]
    by_hand = [in_turns(), hidden_on_one_that_waits(), operators_in_data()]
    for trace, ranks in [*drawn, *by_hand]:
        right, costs = costs_of(trace, ranks)
        given = [dict(each) for each in trace]
        found = exercise.bottleneck(trace, ranks)
        expect.equal(found, right, f"the bottleneck ({costs})")
        expect.equal(trace, given, "the trace that bottleneck was given")


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
