"""Causes of a run that is only slow: what it counts and how long its steps take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise, takewhile

from workshop.diagnose.lines import Line
from workshop.diagnose.numbers import (
    RESUMED,
    Rule,
    Said,
    Shown,
    far_above,
    grouped,
    side_by_side,
)
from workshop.diagnose.ranks import First

SECONDS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3}
DURATION = re.compile(r"\b(?:time|seconds|sec|duration|took|ms)\b")
WAITING = re.compile(
    r"\b(?:wait|all-?reduce|comm|sync|barrier|save|saving)", re.IGNORECASE
)
BYTES = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
SENT = re.compile(r"all[-_ ]?(?:reduce|gather)|reduce[-_]scatter|broadcast|sent", re.I)
ETHERNET = 125e6  # bytes per second of 1 Gbit/s: no cluster's link is slower
SAVED = re.compile(r"\b(?:saved|wrote|written)\b|\bsaving\b", re.IGNORECASE)
PART = re.compile(r"shard|distcp|__\d+_\d+|\bpart\b|local", re.IGNORECASE)
PROCESS = re.compile(r"\b(?:process|pid)\W{0,4}(\d+)\b(?! ?(?:of|/))", re.IGNORECASE)
WORKERS = re.compile(r"worker|loader", re.IGNORECASE)
PIDS = re.compile(r"\b(?:pids?|process(?:es)?)\W*(\d+(?:\W+\d+\b)*)", re.IGNORECASE)
ON_NODE = re.compile(
    r"(?:nproc[-_]per[-_]node|local[-_ ]world[-_ ]size)\W{1,3}(\d+)", re.IGNORECASE
)
# "cores: 0-7", "cpus 0,2": which ones, not how many
NAMED_CORES = re.compile(r"\b(?:cores|cpus)\W{0,3}\d+[-,]\d", re.IGNORECASE)
SPEED = re.compile(r"^(?:samples|images|tokens|sequences|examples)/s(?:ec)?$")


def too_many_threads(said: list[Said], ranks: int) -> Shown | None:
    """The ranks of a node compute with more threads than it has cores."""
    threads = number_of(
        said,
        re.compile(r"(?<!interop )(?<!inter-op )threads$"),
        re.compile(r"^threads?$"),
    )
    cores = number_of(
        [each for each in said if not NAMED_CORES.search(each.text)],
        re.compile(r"(?:cores|cpus|cpu count)$"),
        re.compile("^(?:cores|cpus)$"),
    )
    if not threads or not cores:
        return None
    together = re.search(r"in all|total|altogether", threads[1].text)
    on_node = next(filter(None, (ON_NODE.search(each.text) for each in said)), None)
    each = 1 if together else int(on_node[1]) if on_node else max(ranks, 1)
    rows = dict.fromkeys((threads[1].line, cores[1].line))
    sure = bool(together or on_node)
    return Shown(tuple(rows), sure) if each * threads[0] > cores[0] else None


def number_of(
    said: Iterable[Said], name: re.Pattern[str], unit: re.Pattern[str]
) -> tuple[float, Said] | None:
    """The first number that is called so, or counts such things."""
    for each in said:
        for number in each.metrics:
            if name.search(number.name) or unit.search(number.unit):
                return number.value, each
    return None


def checkpoint_storm(said: list[Said], _ranks: int) -> Shown | None:
    """Each of several ranks writes a file as large as the whole model."""
    rows = [e for e in said if SAVED.search(e.text) and not PART.search(e.text)]
    for by_rank in side_by_side(rows):
        sizes = {rank: sizes_of(each) for rank, each in by_rank.items()}
        written = {row[0] for row in sizes.values() if row}
        if len(written) == 1 and all(sizes.values()):
            whole = max(max(row) for row in sizes.values())
            if min(written) > 0.9 * whole:
                named = any(len(row) > 1 for row in sizes.values())
                return Shown(tuple(e.line for e in by_rank.values())[:2], named)
    return None


def sizes_of(said: Said) -> list[float]:
    return [n.value * BYTES[n.unit] for n in said.metrics if n.unit in BYTES]


def restarted_workers(said: list[Said], _ranks: int) -> Shown | None:
    """Each epoch has data workers of its own, or begins with a step that is slow."""
    rows = [e for e in said if e.epoch is not None and WORKERS.search(e.text)]
    by_epoch = {epoch: workers_of(of) for (epoch,), of in by_epochs(rows).items()}
    groups = [pids for pids in by_epoch.values() if pids]
    if len(groups) > 1 and not any(a & b for a, b in pairwise(groups)):
        first = [of[0].line for of in by_epochs(rows).values()]
        return Shown(tuple(first[:2]), not any(RESUMED.search(e.text) for e in said))
    return slow_first_step(said)


def by_epochs(said: Iterable[Said]) -> dict[tuple[object, ...], list[Said]]:
    return grouped(said, lambda each: (each.epoch,))


def workers_of(said: Iterable[Said]) -> set[int]:
    """The numbers of their processes."""
    found = (PIDS.search(each.text) for each in said)
    return {int(n) for each in found if each for n in re.findall(r"\d+", each[1])}


def seconds_of(said: Said) -> float | None:
    """How long a step took, by its unit or its name; not how long it waited."""
    for number in said.metrics:
        if WAITING.search(number.name):
            continue
        if number.unit in SECONDS:
            return number.value * SECONDS[number.unit]
        if DURATION.search(number.name):
            return number.value
    return None


def slow_first_step(said: list[Said]) -> Shown | None:
    timed = [e for e in said if e.epoch is not None and e.step is not None]
    timed = [e for e in timed if e.rank == timed[0].rank]
    first: list[Said] = []
    for group in by_epochs(timed).values():
        steps = {n: seconds_of(each) or 0.0 for n, each in enumerate(group)}
        if len(steps) > 2 and far_above(steps, 5) == 0:
            first.append(group[0])
        elif len(steps) > 2:
            return None
    return Shown(tuple(e.line for e in first[1:3]), False) if len(first) > 2 else None


def slow_link(said: list[Said], _ranks: int) -> Shown | None:
    """Large tensors are sent more slowly than any cluster's link would."""
    slow = []
    for each in said:
        size, seconds = sizes_of(each)[:1], timed_transfer(each)
        if SENT.search(each.text) and size and size[0] >= 1e6 and seconds:
            slow.append((size[0] / seconds < ETHERNET, each))
    bad = [each.line for is_slow, each in slow if is_slow]
    return Shown(tuple(bad[:2]), False) if 2 * len(bad) > len(slow) else None


def timed_transfer(said: Said) -> float | None:
    found = [n.value * SECONDS[n.unit] for n in said.metrics if n.unit in SECONDS]
    return found[0] if found else None


def n_times_n(said: list[Said], _ranks: int) -> Shown | None:
    """Two processes are the same rank, before a first step and without a restart."""
    if any(RESUMED.search(each.text) for each in said):
        return None
    in_words = any(PROCESS.search(each.text) for each in said)
    started: dict[tuple[object, ...], dict[int, Line]] = {}
    for each in takewhile(lambda each: each.step is each.epoch is None, said):
        told = PROCESS.search(each.text)
        marked = None if in_words else each.line.process
        process = int(told[1]) if told else marked
        if process and each.rank is not None and each.worker is None:
            of_rank = started.setdefault((each.form, each.rank), {})
            of_rank.setdefault(process, each.line)
    twice = [tuple(rows.values())[:2] for rows in started.values() if len(rows) > 1]
    return Shown(twice[0], True) if twice and len(twice) == len(started) else None


def slow_steps(said: list[Said], _ranks: int) -> Shown | None:
    """One rank takes at least twice as long as the others, in most steps."""
    groups = [p for p in side_by_side(said) if next(iter(p.values())).step is not None]
    slowest: dict[int, list[Said]] = {}
    timed = 0
    for by_rank in groups:
        seconds = {rank: seconds_of(each) for rank, each in by_rank.items()}
        known = {rank: value for rank, value in seconds.items() if value is not None}
        timed += len(known) > 1
        rank = far_above(known, 2) if len(known) > 1 else None
        if rank is not None:
            slowest.setdefault(rank, []).append(by_rank[rank])
    for rank, rows in slowest.items():
        if timed > 2 and len(rows) >= 0.8 * timed:
            why = f"the slowest by far in {len(rows)} of {timed} steps"
            first = First((rank,), why, sure=False)
            return Shown(tuple(e.line for e in rows[:2]), False, first)
    return None


def slower_with_more(said: list[Said], _ranks: int) -> Shown | None:
    """More processes together do less per second."""
    speeds: dict[int, tuple[float, Said]] = {}
    for each in said:
        for number in each.metrics:
            if each.size and SPEED.match(number.unit):
                per_rank = re.search(r"per (?:rank|gpu|process)|/gpu", each.text, re.I)
                total = number.value * (each.size if per_rank else 1)
                speeds[each.size] = (total, each)
    few, many = (min(speeds), max(speeds)) if speeds else (0, 0)
    if many > few and speeds[many][0] < speeds[few][0]:
        return Shown((speeds[few][1].line, speeds[many][1].line), False)
    return None


SLOW: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        too_many_threads,
        checkpoint_storm,
        restarted_workers,
        n_times_n,
        slow_steps,
        slow_link,
        slower_with_more,
    )
}
