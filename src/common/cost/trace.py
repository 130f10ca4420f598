"""Where the time of each rank went, read from what ``torch.profiler`` exports.

A trace is the JSON file of ``export_chrome_trace``: a list of events with a name, a
category, a start and a duration in microseconds. Times below are in milliseconds.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from common.distributed import BadInput

Spans = list[tuple[float, float]]  # (begins, ends), in order, none overlaps another
STEP = re.compile(r"ProfilerStep#\d+|step \d+")
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
CURES = {
    "compute": "make the step itself cheaper; the ranks are busy",
    "data": "load batches ahead of time, or in more processes",
    "waiting": "speed up the rank that is late",
    "sending": "send less, less often, or more of it during backward",
    "other": "find what else runs: Python between operators, or a core that is shared",
}


@dataclass
class _Lane:
    """The moments of one rank, by what it was doing; each moment belongs to one."""

    steps: Spans
    compute: Spans
    data: Spans
    waiting: Spans  # exposed communication: another rank had not started it yet
    sending: Spans  # exposed communication: the rest

    def share(self) -> dict[str, float]:
        """Milliseconds of each kind; ``other`` is what none of the spans covers."""
        kinds = ("compute", "data", "waiting", "sending")
        found = {kind: _length(getattr(self, kind)) for kind in kinds}
        return found | {"other": max(0.0, _length(self.steps) - sum(found.values()))}


def _length(spans: Spans) -> float:
    """How long these spans are together."""
    return sum(end - begin for begin, end in spans)


def _union(spans: Spans) -> Spans:
    """The moments that any of the spans covers."""
    found: Spans = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _common_part(left: Spans, right: Spans) -> Spans:
    """The moments that both cover."""
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        begin, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if begin < end:
            found.append((begin, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return found


def _without(spans: Spans, *others: Spans) -> Spans:
    """The moments of ``spans`` that none of the others covers."""
    taken = _union([span for other in others for span in other])
    edges = [float("-inf"), *(edge for span in taken for edge in span), float("inf")]
    gaps = list(zip(edges[::2], edges[1::2], strict=True))
    return _common_part(spans, gaps)


def load_trace(path: Path) -> dict:
    """The trace in a file, which may be compressed; BadInput if it isn't one."""
    cure = "write one with torch.profiler's export_chrome_trace"
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        trace = json.loads(content)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise BadInput(f"{path} is no JSON file, or half of one: {cure}") from error
    if isinstance(trace, list):  # the other form of a Chrome trace
        trace = {"traceEvents": trace}
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list) or not any(map(_is_timed, events)):
        raise BadInput(f"{path} has no timed traceEvents: {cure}")
    return trace


def _is_timed(event: object) -> bool:
    if not isinstance(event, dict) or event.get("ph") != "X":
        return False
    times = (event.get("ts"), event.get("dur", 0))
    return isinstance(event.get("name"), str) and all(
        isinstance(value, (int, float)) for value in times
    )


def _read_lanes(trace: dict) -> dict[int, _Lane]:
    """The lane of each rank; BadInput if there is neither a step nor an operator.

    A file that 17_profile.py merged has the ranks as process numbers. Any other
    belongs to one rank.
    """
    merged = "mergedRanks" in trace
    world = trace.get("distributedInfo")
    own = world.get("rank", 0) if isinstance(world, dict) else 0
    events = defaultdict(list)
    for event in filter(_is_timed, trace["traceEvents"]):
        rank = event.get("pid") if merged else own
        if isinstance(rank, int):
            events[rank].append(event)
    ranks = {rank: _Events(events[rank]) for rank in sorted(events, key=str)}
    if not any(rank.compute for rank in ranks.values()):
        raise BadInput("the trace has no operators: profile with ProfilerActivity.CPU")
    late = _last_starts([rank.collectives for rank in ranks.values()])
    return {rank: found.lane(late) for rank, found in ranks.items()}


def _last_starts(ranks: list[Spans]) -> list[float]:
    """When the last rank started the first, second, ... collective; none if unequal."""
    if len({len(collectives) for collectives in ranks}) != 1:
        return []
    return [max(begin for begin, _ in each) for each in zip(*ranks, strict=True)]


class _Events:
    """The events of one rank, sorted by what they are."""

    def __init__(self, events: list[dict]):
        self.events = events
        on_gpu = self.spans(lambda e: e.get("cat") in ON_GPU and not _sends(e))
        self.collectives = sorted(
            _span(e) for e in events if _sends(e) and e["name"] != "gloo:barrier"
        )
        loads = self.spans(lambda e: e["name"].startswith("enumerate(DataLoader)"))
        # on the CPU, operators that build a batch belong to the loader, and one that
        # contains the call of a collective may wait in it for a core
        ops = self.spans(lambda e: e.get("cat") == "cpu_op")
        calls = self.spans(lambda e: e["name"].startswith("c10d::"))
        self.compute = on_gpu or _without(ops, loads, calls)
        self.data = _without(loads, self.compute)

    def spans(self, wanted) -> Spans:
        return _union([_span(event) for event in self.events if wanted(event)])

    def lane(self, last_starts: list[float]) -> _Lane:
        every = self.spans(lambda event: True)
        steps = self.spans(lambda event: STEP.fullmatch(event["name"]))
        steps = steps or [(every[0][0], every[-1][1])]
        both = zip(self.collectives, last_starts, strict=False)
        late = _union([(begin, min(end, last)) for (begin, end), last in both])
        exposed = _without(_union(self.collectives), self.compute, self.data)
        parts = (self.compute, self.data, _common_part(exposed, late))
        parts += (_without(exposed, late),)
        return _Lane(steps, *(_common_part(steps, part) for part in parts))


def _span(event: dict) -> tuple[float, float]:
    return event["ts"] / 1000, (event["ts"] + event.get("dur", 0)) / 1000


def _sends(event: dict) -> bool:
    on_cpu = event.get("cat") == "user_annotation" and event["name"][:5] == "gloo:"
    on_gpu = event.get("cat") == "kernel" and event["name"][:4] == "nccl"
    return on_cpu or on_gpu


def explain(path: Path) -> str:
    """A table with a row for each rank, and what dominates; BadInput if no trace."""
    trace = load_trace(path)
    lanes = _read_lanes(trace)
    shares = {rank: lane.share() for rank, lane in lanes.items()}
    kinds = list(CURES)
    lines = [f"{'ms':<10}{'steps':>9}" + "".join(f"{kind:>9}" for kind in kinds)]
    for rank, share in shares.items():
        times = [_length(lanes[rank].steps), *share.values()]
        lines.append(f"rank {rank:<5}" + "".join(f"{ms:9.1f}" for ms in times))
    mean = {kind: sum(s[kind] for s in shares.values()) / len(shares) for kind in kinds}
    sent, idle = mean["waiting"] + mean["sending"], mean["other"]
    lines.append(f"exposed communication {sent:.1f}, idle {idle:.1f} (mean of ranks)")
    if len(lanes) > 1:
        most = max(share["compute"] for share in shares.values()) / mean["compute"] - 1
        lines.append(f"imbalance: the busiest rank computes {most:.0%} above the mean")
    return "\n".join([*lines, *_memory(trace), _verdict(shares)])


def _verdict(shares: dict[int, dict[str, float]]) -> str:
    """What the steps are made of, in the row of the rank that waits most."""
    by_waiting = sorted(shares, key=lambda rank: shares[rank]["waiting"])
    late, patient = by_waiting[0], by_waiting[-1]
    row = shares[patient]
    kind = max(row, key=row.__getitem__)
    part = row[kind] / (sum(row.values()) or 1)
    lines = [f"Largest part of rank {patient}: {kind}, {part:.0%}"]
    if kind == "waiting":
        more = {k: shares[late][k] - row[k] for k in ("compute", "data", "other")}
        why = max(more, key=more.__getitem__)
        lines.append(f"It waits for rank {late}: {more[why]:.1f} ms more of {why}")
    if len(shares) == 1:
        lines.append("With one rank in the file, sending includes waiting for others")
    return "\n".join([*lines, f"Next: {CURES[kind]}"])


def _memory(trace: dict) -> list[str]:
    """The most bytes that each rank held beyond those when recording began."""
    most: dict[object, int] = defaultdict(int)
    for event in trace["traceEvents"]:
        if isinstance(event, dict) and event.get("name") == "[memory]":
            held = (event.get("args") or {}).get("Total Allocated", 0)
            most[event.get("pid")] = max(most[event.get("pid")], held)
    merged = "mergedRanks" in trace
    names = {pid: f"rank {pid}" if merged else "this rank" for pid in most}
    return [f"memory: {names[pid]} +{most[pid] / 1e6:.1f} MB at most" for pid in most]
