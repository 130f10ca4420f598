"""Checks of exercises/19_nccl_log.py: logs of jobs with an adapter missing."""

import random
import re
from collections import Counter

import pytest

from workshop.grader import expect, variants

LINE = re.compile(
    r"(?:\[[\d :.-]+\] )?([\w.-]+):(\d+):(\d+) \[(\d+)\] "
    r"(?:\S+:\d+ (?:\(\S+\) )?)?NCCL (INFO|WARN) (.*)"
)
REFUSED = "Connect to 10.0.0.3<21724> failed : Connection refused"
CLOSED = "Net : Connection closed by remote peer n2<37364>"


TIME = "[2026-11-30 09:26:53] "
QUOTES = "the log had: n6:6260:6290 [0] NCCL"  # of the program; no job has this host


def of_rank(host, device, network):
    """What one rank prints when it starts; some print the time, too."""
    time = TIME if device in (1, 2) else ""
    head = f"{time}{host}:{6260 + device}:{6290 + device} [{device}] NCCL INFO"
    return [
        f"{head} Bootstrap : Using ens5f0:10.0.0.{device + 10}<0>",
        f"{head} NET/Socket : Using [0]ens5f0:10.0.0.{device + 10}<0>",
        f"{head} NET/Plugin: No plugin found. Not Using network AWS Libfabric",
        f"{head} Using network {network}",
        f"{head} Channel 01/0 : {device}[0] -> 7[7] via NET/{network}/0",
    ]


def mixed(parts, draw):
    """The lines of all parts: those of one part stay in order."""
    parts = [list(part) for part in parts]
    lines = []
    while any(parts):
        lines.append(draw.choice([part for part in parts if part]).pop(0))
    return lines


def record(seed, all_socket=(), some_socket=(), usual="IB", hosts=6, devices=4):
    """A log of a job on n1, n2, ... and n10 whose program prints, too."""
    draw = random.Random(f"log {seed}")
    names = [*[f"n{number}" for number in range(1, hosts)], "n10.example"]
    parts = [
        [
            "epoch 0: Using network Socket would be slow",
            f"{QUOTES} INFO Using network Socket",
            "step 3: NCCL WARN was seen",
            f"{QUOTES} WARN {CLOSED}",
        ]
    ]
    for host in names:
        for device in range(devices):
            on_socket = host in all_socket or (host in some_socket and device == 2)
            parts.append(of_rank(host, device, "Socket" if on_socket else usual))
    return mixed(parts, draw)


def networks_of(
    log, *, kept="all", of="NCCL", once=True, key=1, find=LINE.match, words=slice(None)
):
    """The networks of each host; the keywords are what goes wrong."""
    found = {}
    for line in log:
        match = find(line)
        if not match or "Using network " not in line:
            continue
        if of == "NCCL" and not match[6].startswith("Using network "):
            continue
        host = line.split(":")[0] if key == "before the colon" else match[key]
        names = found.setdefault(host, [])
        name = " ".join(match[6].partition("Using network ")[2].split()[words])
        if kept == "first" and names:
            continue
        if kept == "last":
            names.clear()
        if not once or name not in names:
            names.append(name)
    return {host: tuple(sorted(names)) for host, names in found.items()}


QUOTED = "a program's line counted that quotes one of NCCL: call LINE.match"
MISTAKES = {
    "the last rank of a host had overwritten the others: ranks of a host may differ": {
        "kept": "last"
    },
    "only the first rank of a host counted: ranks of a host may differ": {
        "kept": "first"
    },
    "each rank added its network once more": {"once": False},
    "the process were the host": {"key": 2},
    "the time in front of a line belonged to the host": {"key": "before the colon"},
    "these words counted anywhere in a message: it must begin with them": {"of": "all"},
    QUOTED: {"find": LINE.search},
    "only the first word of a network's name counted": {"words": slice(1)},
    "only the last word of a network's name counted": {"words": slice(-1, None)},
}


def jobs(seed):
    """(log, the hosts that differ) of four jobs."""
    yield record(seed), []
    yield record(seed + 1, all_socket=["n3"]), ["n3"]
    yield record(seed + 2, some_socket=["n2"]), ["n2"]
    both = record(seed + 3, all_socket=["n10.example"], some_socket=["n4"])
    yield both, ["n10.example", "n4"]
    yield record(seed + 4, some_socket=["n3"], usual="AWS Libfabric"), ["n3"]


@pytest.mark.ranks(1)
def test_networks(exercise, seed):
    """Each host's networks are found, of jobs in which a node or a rank uses TCP."""
    logs = [log for log, _ in jobs(seed)]
    cause = variants.cause_in(
        exercise.networks, [(log,) for log in logs], networks_of, MISTAKES
    )
    for number, log in enumerate(logs, 1):
        found = exercise.networks(list(log))
        what = f"the networks of the hosts of job {number}"
        expect.that(isinstance(found, dict), f"{what}: expected a dict, got {found!r}")
        right = networks_of(log)
        hosts = sorted(right)
        expect.equal(sorted(found), hosts, f"the hosts of job {number}", cause=cause)
        for host in hosts:
            what = f"the networks of host {host} of job {number}"
            expect.equal(found[host], right[host], what, cause=cause)
            kind = type(found[host]).__name__
            told = f"{what} are a {kind}, which no Counter can count: return a tuple"
            expect.that(isinstance(found[host], tuple), told)


def odd(found, *, usual=None, in_order=True, rule="most"):
    """The hosts that differ; the keywords are what goes wrong."""
    counted = Counter(found.values()).most_common()
    normal = usual or counted[0][0]
    if rule == "each network":
        each = Counter(name for names in found.values() for name in names)
        normal = (each.most_common(1)[0][0],)
    if rule == "first":
        normal = next(iter(found.values()))
    if rule == "only two":
        return sorted(host for host, names in found.items() if len(names) > 1)
    if rule == "has it":
        return sorted(h for h, names in found.items() if not {*normal} <= {*names})
    if rule == "shares one":
        return sorted(h for h, names in found.items() if normal[0] not in names)
    hosts = [host for host, names in found.items() if names != normal]
    if in_order:
        return sorted(hosts)
    return hosts


WRONG_RULES = {
    "IB were always what is normal": {"usual": ("IB",)},
    "Socket were always what is normal": {"usual": ("Socket",)},
    "the first host were what is normal, not most hosts": {"rule": "first"},
    "only hosts with two networks differed": {"rule": "only two"},
    "the most frequent network were what is normal: a host may have two": {
        "rule": "each network"
    },
    "a host whose ranks differ were normal, because some of them are": {
        "rule": "shares one"
    },
    "a host were normal that uses another network besides": {"rule": "has it"},
    "hosts weren't put in order": {"in_order": False},
}
IB, SOCKET, BOTH = ("IB",), ("Socket",), ("IB", "Socket")
CLUSTERS = [
    {"n1": IB, "n2": IB, "n3": IB},
    {"n1": SOCKET, "n2": IB, "n3": IB, "n4": IB},
    {"n9": BOTH, "n2": IB, "n3": SOCKET, "n4": IB, "n10": IB},
    {"n1": SOCKET, "n2": SOCKET, "n3": IB, "n4": SOCKET},  # a cluster without IB
    {"n1": BOTH, "n2": IB, "n3": BOTH, "n4": BOTH, "n5": SOCKET},
]


@pytest.mark.ranks(1)
def test_which_hosts_differ(exercise, seed):
    """Hosts that don't use what most hosts use are named, even where most use TCP."""
    cases = [(dict(cluster),) for cluster in CLUSTERS]
    cause = variants.cause_in(exercise.unlike_the_others, cases, odd, WRONG_RULES)
    for cluster in CLUSTERS:
        found = exercise.unlike_the_others(dict(cluster))
        what = f"the hosts that differ, of {cluster}"
        expect.equal(found, odd(cluster), what, cause=cause)


def warned(log, *, which="first", of=r"WARN", part=5, find=LINE.match, key=1):
    """The first warning; the keywords are what goes wrong."""
    matches = [find(line) for line in log]
    found = [m for m in matches if m and re.search(of, m[part])]
    if not found:
        return None
    if which == "of the first host":
        found.sort(key=lambda match: match[1])
    match = found[-1] if which == "last" else found[0]
    if key == "before the colon":
        return match[0].split(":")[0], match[6]
    return match[key], match[6]


WRONG_WARNINGS = {
    "the last warning counted, not the first": {"which": "last"},
    "the hosts were searched one after the other, not the lines": {
        "which": "of the first host"
    },
    "lines with INFO were warnings": {"of": "INFO|WARN"},
    "WARN in the message were enough: it must be in front of the message": {"part": 0},
    "the time in front of a line belonged to the host": {"key": "before the colon"},
    QUOTED: {"find": LINE.search},
}


@pytest.mark.ranks(1)
def test_the_first_warning(exercise, seed):
    """The first warning of NCCL counts, whichever host prints it."""
    log = record(seed)
    log.insert(5, "n5:6260:6290 [0] NCCL INFO NET/Plugin: its log level is WARN")
    warnings = [
        f"{TIME}n4:6261:6291 [1] misc/socket.cc:483 NCCL WARN {REFUSED}",
        f"n1:6260:6290 [0] misc/socket.cc:538 NCCL WARN {CLOSED}",
        f"n5:6262:6292 [2] misc/socket.cc:538 NCCL WARN {CLOSED}",
    ]
    cases = [([*log, *warnings],), ([*log, warnings[2], *log],), (log,)]
    cause = variants.cause_in(exercise.first_warning, cases, warned, WRONG_WARNINGS)
    kinds = ["three warnings", "one warning", "no warning"]
    for kind, (lines,) in zip(kinds, cases, strict=True):
        found = exercise.first_warning(list(lines))
        right = warned(lines)
        what = f"the first warning of a log with {kind}"
        if right is None and not cause:
            told = f"is {found!r}, expected None: a program's lines aren't NCCL's"
            expect.that(found is None, f"{what}: {told}")
        expect.equal(found, right, what, cause=cause)
