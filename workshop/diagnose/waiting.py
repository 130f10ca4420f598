"""Causes that no single message shows, but the lines of all ranks together do.

Most of them show in the line of the program in which each rank waited, from the
tracebacks of a time-out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from workshop.diagnose.first import OF_LAUNCHERS, is_consequence, look, tasks
from workshop.diagnose.kinds import EXCEPTION, PROGRESS, is_end_of_run
from workshop.diagnose.lines import Line
from workshop.diagnose.logs import Log
from workshop.diagnose.watchdog import mismatch

FRAME = re.compile(r'^\s+File "([^"]+)", line (\d+), in ')
LIBRARY = re.compile(
    r"(?:site|dist)-packages/|/lib/python|^<|(?:^|/)torch/|bin/torchrun"
)
SEND = re.compile(r"\bsend\(")
POINT_TO_POINT = re.compile(r"\b(?:send|recv)\(")
BARRIER = re.compile(r"\bbarrier\(")
CLOSED = re.compile(r"(?:closed|reset) by (?:remote )?peer|Broken pipe", re.IGNORECASE)
TIMED_OUT = re.compile(r"Timed out waiting \d+ ?ms for")


NOT_FOUND = re.compile(r"addresses of \((\S+), \d+\) cannot be retrieved \(gai error")
NO_ANSWER = re.compile(r"timed out after \d+m?s while trying to connect to \((\S+), ")
NOT_JOINED = re.compile(r"waiting for clients\. \d+/\d+ clients joined")
COUNTED = re.compile(r"store based barrier .*world_size=(\d+), worker_count=(\d+)")
ORDINAL = re.compile(r"invalid device ordinal")
PREPARES = re.compile(
    r"tokeniz|pre-?process|\bmap\b|\bmapping\b|generating \S+ (?:split|examples)|"
    r"\bfilter|grouping texts|packing",
    re.IGNORECASE,
)
BAR = re.compile(r"\b(\d+)%\|.*\[(?:(\d+):)?(\d+):(\d+)<")
KEEP_ALIVE = re.compile(r"failed to send a keep-alive heartbeat to the rendezvous")
ENDED = re.compile(
    r"Received (?:\d+|Signals\.\w+) death signal|KeyboardInterrupt|CANCELLED AT|"
    r"got signal: \d"
)
EVICTED = re.compile(r"The node was low on resource|The node had condition: \[\w+Press")
POD_NAME = re.compile(r"^Name: +\S")
ABOVE = 30  # lines in which kubectl describe names the pod
FULL = re.compile(r"Error: (?:CUDA|HIP) error: out of memory")
NOTHING_ALLOCATED = re.compile(
    r"\b(?:memory[ _]allocated|allocated(?: memory)?)[ :=]+"
    r"0(?:\.0+)?(?: ?[KMG]i?B)?\b",  # 0, 0.00 GiB
    re.IGNORECASE,
)
LOOPBACK = re.compile(
    r"connectFullMesh failed.*\[(?:127\.\d+\.\d+\.\d+|::1)\]|"
    r"gloo/transport/tcp/pair\.cc:\d+\] connect \[127\.\S+: Connection refused"
)
SEVERAL_NODES = re.compile(
    r"\bnnodes[=: ]+(?:[2-9]|\d\d)|\b(?:node|group)[-_]rank[=: ]+[1-9]|\bnNodes [2-9]"
)
A_NODE = 8  # ranks that a node has, as a rule
MEMBER = re.compile(r"\bGLOBAL_RANK: (\d+), MEMBER: \d+/(\d+)")
STORE = re.compile(r"connection to the C10d store has failed")
LONG = 300  # seconds
TASKS = re.compile(r"^srun: error: \S+: tasks? ([\d,-]+): Exited")


@dataclass(frozen=True)
class Waits:
    """Where each rank waited, which of them timed out, and which ranks there are."""

    lines: dict[int, Line]
    timed_out: frozenset[int]
    ranks: frozenset[int]

    def in_one_line(self) -> bool:
        return len({line.text for line in self.lines.values()}) == 1


def waiting_lines(log: Log, ranks: set[int]) -> Waits | None:
    """Where the ranks waited; None if any of them failed by an error of its own.

    A rank that timed out closes its connections, so the others may lose a partner
    instead: their lines count, too, if at least one rank timed out.
    """
    frames: dict[int, list[Line]] = {}
    waits: dict[int, Line] = {}
    timed_out: set[int] = set()
    rows = [line for line in log.lines if line.rank is not None]
    for row, line in enumerate(rows):
        rank = line.rank or 0
        if match := FRAME.match(line.text):
            if not LIBRARY.search(match[1]):
                code = next((x for x in rows[row + 1 :] if x.rank == rank), line)
                said = f"{match[1]}:{match[2]} {code.text.strip()}"
                frames.setdefault(rank, []).append(Line(line.place, rank, said))
        elif line.kind == EXCEPTION and not OF_LAUNCHERS.search(line.text):
            if not is_consequence(line.text):
                return None
            if TIMED_OUT.search(line.text):
                timed_out.add(rank)
            if frames.get(rank):
                waits.setdefault(rank, frames[rank][-1])
    if not timed_out:
        return None
    known = ranks | set(waits) | timed_out
    return Waits(waits, frozenset(timed_out), frozenset(range(max(known) + 1)))


def differ(waits: Waits) -> bool:
    return len({line.text for line in waits.lines.values()}) > 1


def all_send(waits: Waits) -> bool:
    lines = waits.lines.values()
    return len(lines) > 1 and all(SEND.search(line.text) for line in lines)


def all_timed_out(waits: Waits) -> bool:
    """All ranks called this collective in time, and none got an answer."""
    everybody = waits.timed_out == waits.ranks == set(waits.lines)
    if not everybody or len(waits.ranks) < 2 or not waits.in_one_line():
        return False
    return not POINT_TO_POINT.search(next(iter(waits.lines.values())).text)


def rank_0_came_late(waits: Waits) -> bool:
    """The others waited in a barrier that rank 0 reached too late, or never."""
    others = waits.ranks - {0}
    if not others or 0 in waits.timed_out or not others <= set(waits.lines):
        return False
    return waits.in_one_line() and bool(BARRIER.search(waits.lines[max(others)].text))


def alone(waits: Waits) -> bool:
    """One rank timed out, and of the others there is no line at all."""
    return len(waits.ranks) == 1 and waits.timed_out == waits.ranks


def unresolved(log: Log) -> list[Line]:
    """A name that wasn't looked up until connecting to it timed out."""
    unanswered = (NO_ANSWER.search(line.text) for line in log.lines)
    hosts = {match[1] for match in unanswered if match}
    found = ((NOT_FOUND.search(line.text), line) for line in log.lines)
    return [line for match, line in found if match and match[1] in hosts][:1]


def unanswered(log: Log) -> list[Line]:
    """Rank 0 waited for clients, and a client waited for an answer."""
    both = [
        next((line for line in log.lines if pattern.search(line.text)), None)
        for pattern in (NOT_JOINED, NO_ANSWER)
    ]
    return [line for line in both if line] if all(both) else []


def left_early(log: Log) -> list[Line]:
    """Ranks lost a partner that torchrun doesn't report: it ended with status 0."""
    if not any(CLOSED.search(line.text) for line in log.lines):
        return []
    seen = look(log)
    lost = list(seen.lost.values())
    if not lost or not seen.codes or seen.own or min(seen.codes.values()) < -15:
        return []
    known = seen.ranks | set(range(max(seen.lost)))
    silent = known - set(seen.lost) - set(seen.codes)
    first = min(lost, key=log.lines.index)
    return [first] if silent and CLOSED.search(first.text) else []


def fewer(log: Log) -> list[Line]:
    return counted(log, lambda size, count: count < size)


def more(log: Log) -> list[Line]:
    return counted(log, lambda size, count: count > size)


def counted(log: Log, fits: Callable[[int, int], bool]) -> list[Line]:
    """A barrier whose number of ranks isn't the world size."""
    found = ((COUNTED.search(line.text), line) for line in log.lines)
    return [
        line for match, line in found if match and fits(int(match[1]), int(match[2]))
    ][:1]


def late(log: Log) -> list[Line]:
    """Ranks waited for a key of the store, and who was to set it reports nothing."""
    seen = look(log)
    awaited = [rank for rank in seen.waited_for if rank not in seen.lost]
    return [seen.waited_for[rank] for rank in awaited if not seen.own][:1]


def prepares_data(log: Log) -> list[Line]:
    """A bar of the data's preparation ran on, and ranks waited for another one."""
    bars = [line for line in log.lines if PREPARES.search(line.text)]
    # where the watchdog writes into the line of a bar, whose bar it is isn't known
    bars = [line for line in bars if "ProcessGroup" not in line.text]
    longest = max(bars, key=took, default=None)
    if longest is None or took(longest) < LONG:
        return []
    seen = look(log)
    known = seen.ranks | set(range(max(seen.lost, default=0)))
    if not seen.lost or seen.own or not known - set(seen.lost):
        return []
    return [] if longest.rank in seen.lost else [longest]


def took(line: Line) -> int:
    """For how many seconds a bar that isn't at its end has run."""
    bar = BAR.search(line.text)
    if bar is None or bar[1] == "100":
        return 0
    hours, minutes, seconds = (int(part or 0) for part in bar.groups()[1:])
    return 3600 * hours + 60 * minutes + seconds


def store_left(log: Log) -> list[Line]:
    """The store ended a connection that it had."""
    ended = False
    for line in log.lines:
        if line.kind == EXCEPTION and STORE.search(line.text):
            return [line] if ended else []
        if line.kind == EXCEPTION:
            ended = bool(CLOSED.search(line.text))
    return []


def others_have_no_gpu(log: Log) -> list[Line]:
    """Every task but the first asks for a GPU that it doesn't see."""
    shown = [line for line in log.lines if ORDINAL.search(line.text)]
    failed: set[int] = set()
    for line in log.lines:
        if match := TASKS.match(line.text):
            failed |= set(tasks(match[1]))
    return shown[:1] if 1 in failed and 0 not in failed else []


def mismatched(log: Log) -> list[Line]:
    """What two ranks called as the same collective of one group."""
    calls = mismatch(look(log).dump)
    return [call.line for call in calls] if calls else []


def doubled(log: Log) -> list[Line]:
    """Each node counts its own ranks from 0, and those that follow are missing.

    All ranks that are there announce themselves equally often, and as often as it takes
    to get the number of ranks that they wait for.
    """
    sizes: dict[int, list[tuple[int, Line]]] = {}
    for line in log.lines:
        if line.kind == EXCEPTION:
            break  # what follows may be of a second start
        if told := MEMBER.search(line.text):
            sizes.setdefault(int(told[2]), []).append((int(told[1]), line))
    for size, announced in sizes.items():
        present = {rank for rank, _ in announced}
        times = size // len(present)
        if times < 2 or present != set(range(len(present))):
            continue
        counts = Counter((rank, line.text) for rank, line in announced)
        if len(counts) == len(present) and set(counts.values()) == {times}:
            return [line for rank, line in announced if rank == 0][:2]
    return []


def store_gone(log: Log) -> list[Line]:
    """An agent couldn't tell the store that it's alive, and no rank here had failed."""
    seen = look(log)
    failed = seen.own or seen.unmarked or seen.agent
    if failed or any(map(is_end_of_run, log.lines)):
        return []
    return [line for line in log.lines if KEEP_ALIVE.search(line.text)][:1]


def stood_unresolved(log: Log) -> list[Line]:
    """A name wasn't looked up, and the run took no step until somebody ended it."""
    rows = log.lines
    found = [n for n, row in enumerate(rows) if NOT_FOUND.search(row.text)]
    later = rows[found[0] :] if found else []
    stepped = any(PROGRESS.search(row.text) for row in later)
    ended = any(ENDED.search(row.text) for row in later)
    answered = any(NO_ANSWER.search(row.text) for row in later)
    if len(found) < 2 or stepped or not ended or answered or look(log).own:
        return []
    return [rows[found[0]]]


def left_or_gone(log: Log) -> list[Line]:
    return store_left(log) or store_gone(log)


def evicted(log: Log) -> list[Line]:
    """Which pod kubectl describes, and why Kubernetes evicted it."""
    for place, line in enumerate(log.lines):
        if EVICTED.search(line.text):
            above = log.lines[max(0, place - ABOVE) : place]
            names = [row for row in above if POD_NAME.match(row.text)]
            return [*names[-1:], line]
    return []


def taken(log: Log) -> list[Line]:
    """CUDA had no memory left for a run whose ranks had allocated none."""
    full = [line for line in log.lines if FULL.search(line.text)][:1]
    none = [line for line in log.lines if NOTHING_ALLOCATED.search(line.text)]
    return [*full, *none[:1]] if full and none else []


def loopback(log: Log) -> list[Line]:
    """Ranks of several nodes tell each other an address that each node has."""
    shown = [line for line in log.lines if LOOPBACK.search(line.text)]
    told = any(SEVERAL_NODES.search(line.text) for line in log.lines)
    of_ray = {line.address for line in log.lines if line.process is not None}
    high = any((line.rank or 0) >= A_NODE for line in log.lines)
    return shown[:1] if told or high or len(of_ray) > 1 else []


def both(log: Log, pair: tuple[re.Pattern[str], re.Pattern[str]]) -> list[Line]:
    """The first line of each of two kinds, if both are there."""
    found = [
        next((row for row in log.lines if each.search(row.text)), None) for each in pair
    ]
    return [line for line in found if line] if all(found) else []


# what shows only in two lines together: the one that tells, and what came of it
PAIRS = {
    "hsa_override": (
        re.compile(r"\bHSA_OVERRIDE_GFX_VERSION=\d"),
        re.compile(r"Memory access fault by GPU|HSA_STATUS_ERROR|hipErrorNoBinary"),
    ),
    "cxi_vni": (
        re.compile(r"Failed to find valid default rgroup and vni"),
        re.compile(r"NET/OFI Couldn't open a fabric access domain"),
    ),
    "mpi_peer_lost": (
        re.compile(r"^\s*Peer host: +\S"),
        re.compile(r"communication peer process has unexpectedly disconnected"),
    ),
}


OF_WAITS: dict[str, Callable[[Waits], bool]] = {
    "different_lines": differ,
    "all_send": all_send,
    "link_down": all_timed_out,
    "slow_save": rank_0_came_late,
    "node_off": alone,
}
OF_LINES: dict[str, Callable[[Log], list[Line]]] = {
    "name_not_resolved": unresolved,
    "unanswered_port": unanswered,
    "left_early": left_early,
    "fewer_ranks": fewer,
    "more_ranks": more,
    "late_first_collective": late,
    "store_left": left_or_gone,
    "slow_preparation": prepares_data,
    "tasks_see_one_gpu": others_have_no_gpu,
    "collective_mismatch": mismatched,
    "rank_twice": doubled,
    "own_name_not_resolved": stood_unresolved,
    "pod_evicted": evicted,
    "gpu_taken": taken,
    "loopback_address": loopback,
}


def shown_together(log: Log, ranks: set[int]) -> dict[str, tuple[Line, ...]]:
    """Name of a cause -> the lines that show it together."""
    found = {name: tuple(shows(log)) for name, shows in OF_LINES.items()}
    found |= {name: tuple(both(log, pair)) for name, pair in PAIRS.items()}
    waits = waiting_lines(log, ranks)
    if waits and waits.lines:
        lines = {line.text: line for line in reversed(waits.lines.values())}
        where = tuple(reversed(lines.values()))
        found |= {name: where for name, shows in OF_WAITS.items() if shows(waits)}
    return {name: lines for name, lines in found.items() if lines}
