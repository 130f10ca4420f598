"""Find the bottleneck in a trace: slow data, communication, or one slow rank.

A trace is a list of events on one clock, as src/instruments/17_profile.py writes them::

    {"ph": "X", "pid": 2, "cat": "cpu_op", "name": "aten::mm", "ts": 31.0, "dur": 9.5}

``pid`` is the rank; ``ts`` and ``dur`` are microseconds. Events can lie inside others.
All ranks call the same collectives in the same order, and here no two collectives
of a rank overlap. Communication is *exposed* while the rank has no data and no compute
event. Three things can make all ranks slow, and each costs some microseconds::

    "data"           the time inside data events, of the rank with the least of it
    "communication"  exposed time after the last rank has started the collective, of the
                     rank with the least of it
    "slow rank"      exposed time before the last rank has started the collective, of
                     the rank with the most of it

Three recorded traces are in docs/traces. Open each one in https://ui.perfetto.dev
and guess its bottleneck. Then compare with what your function says::

    python exercises/17_three_traces.py docs/traces/17_*.json

    workshop check 17_three_traces

The page is docs/lessons/17_speed/4_slow_rank.rst.
"""

import json
import sys

Span = tuple[float, float]  # (begins, ends) in microseconds


def spans(trace: list[dict], rank: int, kind: str) -> list[Span]:
    """Events of a rank that are "data", "compute" or "communication", in order."""
    found = []
    for event in trace:
        name = event["name"]
        kinds = {
            "data": name.startswith("enumerate(DataLoader)"),
            "compute": event.get("cat") == "cpu_op" and name[:6] != "c10d::",
            "communication": name.startswith("gloo:"),
        }
        if event["ph"] == "X" and event["pid"] == rank and kinds[kind]:
            found.append((event["ts"], event["ts"] + event["dur"]))
    return sorted(found)


def merge(found: list[Span]) -> list[Span]:
    """The same moments as spans that don't overlap, in order; ``found`` is unchanged.

    A span that begins exactly where another one ends belongs to it.
    """
    # TODO 1 of 3: put together what overlaps, whatever the order.
    # [start answer 1]
    merged: list[Span] = []
    for begin, end in sorted(found):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
    # [end answer 1]


def without(found: list[Span], others: list[Span]) -> float:
    """How many microseconds of ``found`` none of the ``others`` covers."""

    def length(several: list[Span]) -> float:
        return sum(end - begin for begin, end in merge(several))

    return length(found + others) - length(others)


def exposed(trace: list[dict], rank: int, ranks: int) -> tuple[float, float]:
    """Exposed communication of ``rank`` (before, after) the last rank has started.

    A collective that the last rank starts when this one has ended is all before.
    """
    # TODO 2 of 3: cut each collective in two where the last rank starts it.
    # [start answer 2]
    busy = spans(trace, rank, "data") + spans(trace, rank, "compute")
    everyone = [spans(trace, other, "communication") for other in range(ranks)]
    waiting, sending = [], []
    for number, (begin, end) in enumerate(everyone[rank]):
        cut = min(end, max(other[number][0] for other in everyone))
        waiting.append((begin, cut))
        sending.append((cut, end))
    return without(waiting, busy), without(sending, busy)
    # [end answer 2]


def bottleneck(trace: list[dict], ranks: int) -> tuple[str, int | None]:
    """(which of the three costs most, the rank that the others wait for or None).

    The slow rank is the one that waits least. The other two have no rank: None.
    """
    # TODO 3 of 3: work out the three costs, and return the largest one's name.
    # [start answer 3]
    data = [without(spans(trace, rank, "data"), []) for rank in range(ranks)]
    parts = [exposed(trace, rank, ranks) for rank in range(ranks)]
    waiting, sending = zip(*parts, strict=True)
    costs = {"data": min(data), "communication": min(sending)}
    costs["slow rank"] = max(waiting)
    name = max(costs, key=costs.__getitem__)
    return name, waiting.index(min(waiting)) if name == "slow rank" else None
    # [end answer 3]


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path) as file:
            recorded = json.load(file)
        print(path, bottleneck(recorded["traceEvents"], recorded["mergedRanks"]))
