"""What NCCL's watchdog dumped: which rank waits in which collective of which group.

SeqNum counts the collectives of one process group, so numbers of different groups
can't be compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from workshop.diagnose.lines import Line

TIMED_OUT = re.compile(
    r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d+), "
    r"OpType=(\w+)(?:, NumelIn=(\d+))?"
)
GROUP = re.compile(
    r"\[PG (?:ID \d+ PG GUID )?([\w.:-]+) ?(?:\([^)]*\) ?)?Rank (\d+)\]", re.IGNORECASE
)
SPEAKER = re.compile(r"\[Rank (\d+)\]")
AT_WORK = re.compile(r"(?:at work|Timeout at NCCL work): (\d+)")
ENQUEUED = re.compile(r"last enqueued NCCL work: (-?\d+)", re.IGNORECASE)
DESYNC = re.compile(
    r"\[([\d, ]+)\] (?:finished collective #\d+, but didn't join collective #(\d+)|"
    r"(?:never joined|hasn't joined))"
)
UNEVEN = re.compile(r"ALLTOALL|SEND|RECV|COALESCED|UNKNOWN")  # sizes may differ
DEFAULT = ("0", "default_pg")


@dataclass(frozen=True)
class Call:
    """A collective in which a rank timed out."""

    rank: int
    group: str | None  # None: the line doesn't tell
    number: int
    operation: str
    size: str  # elements of its input; "" if not told
    line: Line

    def __str__(self) -> str:
        size = f" of {int(self.size):,} elements" if self.size else ""
        return f"rank {self.rank} called {self.operation}{size}"


@dataclass
class Dump:
    """All that the watchdogs of all ranks said."""

    calls: list[Call] = field(default_factory=list)
    enqueued: dict[tuple[str | None, int], int] = field(default_factory=dict)
    absent: tuple[int, ...] = ()  # that torch itself names
    subgroups: bool = False  # there are groups of a part of the ranks


def read_dump(lines: list[Line]) -> Dump:
    """One pass over all lines."""
    dump = Dump()
    groups: dict[tuple[int, int], str] = {}  # (rank, number) -> its group
    for line in lines:
        told = GROUP.search(line.text)
        if told and told[1] not in DEFAULT:
            dump.subgroups = True
        spoken = SPEAKER.search(line.text)
        if spoken and line.rank is not None and int(spoken[1]) != line.rank:
            dump.subgroups = True  # its number in the group isn't its rank
        if match := DESYNC.search(line.text):
            dump.absent = dump.absent or tuple(int(n) for n in match[1].split(","))
        if line.rank is None:
            continue
        group = told[1] if told else None
        note(dump, groups, line, group)
    dump.calls = [
        Call(
            call.rank,
            call.group or groups.get((call.rank, call.number)),
            call.number,
            call.operation,
            call.size,
            call.line,
        )
        for call in dump.calls
    ]
    return dump


def note(dump: Dump, groups: dict, line: Line, group: str | None) -> None:
    """Remember what this line says of its rank."""
    rank = line.rank or 0
    if match := TIMED_OUT.search(line.text):
        call = Call(rank, group, int(match[1]), match[2], match[3] or "", line)
        dump.calls.append(call)
    at_work = AT_WORK.search(line.text)
    if at_work and group is not None:
        groups.setdefault((rank, int(at_work[1])), group)
    if match := ENQUEUED.search(line.text):
        dump.enqueued.setdefault((group, rank), int(match[1]))


def by_group(dump: Dump) -> dict[str | None, dict[int, Call]]:
    """Group -> rank -> its first call that timed out; only what may be compared."""
    found: dict[str | None, dict[int, Call]] = {}
    for call in dump.calls:
        group = None if call.group in DEFAULT else call.group
        if call.group is None and dump.subgroups:
            continue
        ranks = found.setdefault(group, {})
        if call.rank not in ranks or call.number < ranks[call.rank].number:
            ranks[call.rank] = call
    return found


def mismatch(dump: Dump) -> tuple[Call, Call] | None:
    """Two ranks that called something else as the same collective of a group."""
    for ranks in by_group(dump).values():
        firsts: dict[int, Call] = {}
        for call in ranks.values():
            first = firsts.setdefault(call.number, call)
            if differ(first, call):
                return first, call
    return None


def differ(one: Call, other: Call) -> bool:
    if one.operation != other.operation:
        return True
    told = one.size and other.size and not UNEVEN.search(one.operation)
    return bool(told) and one.size != other.size


def behind(dump: Dump) -> tuple[tuple[int, ...], str] | None:
    """(ranks that didn't reach what others wait in, why that is believed)."""
    if dump.absent:
        return dump.absent, "torch's report names what didn't join the collective"
    for group, ranks in by_group(dump).items():
        most = max(call.number for call in ranks.values())
        least = min(call.number for call in ranks.values())
        last = {
            rank: number
            for (name, rank), number in dump.enqueued.items()
            if (None if name in DEFAULT else name) == group
        }
        late = tuple(sorted(rank for rank, n in last.items() if n < most))
        if late and min(last.values()) < least:
            n = min(last[rank] for rank in late)
            return late, f"collective {n} is its last, and others wait in {most}"
        if least < most:
            slow = sorted(rank for rank, c in ranks.items() if c.number == least)
            return tuple(slow), f"it is still in collective {least}, others in {most}"
    return None
