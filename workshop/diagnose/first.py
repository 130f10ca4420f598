"""Which rank failed first, and why that is believed.

When one rank fails, those that communicate with it fail soon after. Their errors are
*consequences*: they lost a partner, or their launcher ended them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from workshop.diagnose.logs import Line, Log

CONSEQUENCE = re.compile(
    r"Connection (?:closed|reset) by (?:remote )?peer|Broken pipe|"
    r"Timed out waiting \d+ ?ms for|Application timeout caused pair closure|"
    r"SIGTERM|Signal 15|exit ?code *: *-15|return code = -15|closing signal|"
    r"NCCL communicator was aborted|ncclRemoteError|remote process exited|"
    r"failed to recv, got 0 bytes|RendezvousClosedError|pair is not connected|"
    r"ProcessGroupNCCL.cpp.*(?:taken? (?:the|your)|detected by watchdog)|"
    r"srun: error: .*: (?:Terminated|Killed)$",
    re.IGNORECASE,
)
EXCEPTION = re.compile(
    r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Interrupt|Expired))\b(?::|$)"
)
OF_LAUNCHERS = re.compile(r"ChildFailedError|Process(?:Exited|Raised)Exception")
ROOT = re.compile(r"Root Cause \(first observed failure\)")
BLOCK_RANK = re.compile(r"^\s+rank\s*: (\d+) \(local_rank: \d+\)")
BLOCK_CODE = re.compile(r"^\s+exitcode\s*: (-?\d+)")
AGENT = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+)")
SPAWN = re.compile(
    r"(?:Process|process) (\d+) terminated with (?:signal \w+|exit code \d+)"
)
SPAWN_RAISED = re.compile(r"^-- Process (\d+) terminated with the following error")
STEP = re.compile(r"^srun: error: \S+: task (\d+): (.*)")
MISSED = re.compile(r"Ranks? ([\d, ]+) failed to pass monitoredBarrier")
TIMED_OUT = re.compile(
    r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d+)"
)
SIZE = re.compile(r"(?:WORLD_SIZE|world_size|nproc[-_]per[-_]node)[=: ]+(\d+)")


@dataclass
class First:
    """The ranks that may have failed first, and how that was found out."""

    ranks: tuple[int, ...]
    reason: str
    sure: bool = True


@dataclass
class Seen:
    """What the log says of each rank, in the order of the log."""

    own: dict[int, Line] = field(default_factory=dict)
    lost: dict[int, Line] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    root: int | None = None
    agent: tuple[int, int] | None = None  # (local rank, exit code)
    missed: list[int] = field(default_factory=list)
    seq_nums: dict[int, int] = field(default_factory=dict)  # rank -> SeqNum
    ranks: set[int] = field(default_factory=set)


def is_consequence(text: str) -> bool:
    return bool(CONSEQUENCE.search(text))


def is_own_error(text: str) -> bool:
    """Whether a traceback ends here that isn't due to another rank or a launcher."""
    named = EXCEPTION.match(text) and not OF_LAUNCHERS.search(text)
    return bool(named) and not is_consequence(text)


def first_failed(log: Log) -> First | None:
    """The rank that failed first; several if nothing tells them apart; or None."""
    seen = look(log)
    for answer in (missed, by_file, by_root, by_own, by_number, by_silence):
        found = answer(seen, log)
        if found:
            return found
    return None


def look(log: Log) -> Seen:
    """One pass over all lines."""
    seen, at_root, block, raised = Seen(), False, None, None
    for line in log.lines:
        text = line.text
        at_root = bool(ROOT.search(text)) or (at_root and not text.startswith("===="))
        if match := BLOCK_RANK.match(text):
            block = int(match[1])
            seen.ranks.add(block)
            if at_root and seen.root is None:
                seen.root = block
        elif (match := BLOCK_CODE.match(text)) and block is not None:
            seen.codes.setdefault(block, int(match[1]))
        elif (match := AGENT.search(text)) and seen.agent is None:
            seen.agent = int(match[2]), int(match[1])
        elif match := SPAWN_RAISED.match(text):
            raised = int(match[1])
        elif match := SPAWN.search(text) or own_step(text):
            seen.own.setdefault(int(match[1]), line)
        elif match := MISSED.search(text):
            seen.missed = seen.missed or [int(n) for n in match[1].split(",")]
        elif size := SIZE.search(text):
            seen.ranks |= set(range(min(int(size[1]), 4096)))
        note(seen, line, raised)
    return seen


def own_step(text: str) -> re.Match[str] | None:
    """A task whose end srun reports, unless it was ended because of another one."""
    return None if is_consequence(text) else STEP.match(text)


def note(seen: Seen, line: Line, raised: int | None) -> None:
    """Remember a rank's first error of its own, or that it lost a partner."""
    rank = raised if line.rank is None else line.rank
    if rank is None:
        return
    seen.ranks.add(rank)
    if match := TIMED_OUT.search(line.text):
        least = min(seen.seq_nums.get(rank, int(match[1])), int(match[1]))
        seen.seq_nums[rank] = least
    elif is_consequence(line.text):
        seen.lost.setdefault(rank, line)
    elif is_own_error(line.text):
        seen.own.setdefault(rank, line)


def listed(ranks: tuple[int, ...] | list[int]) -> str:
    """For a reader: ``rank 2``, ``ranks 0, 1 and 3``."""
    names = [str(rank) for rank in ranks]
    if len(names) > 8:
        names = [*names[:6], "more"]
    head = ", ".join(names[:-1])
    return f"ranks {head} and {names[-1]}" if head else f"rank {names[0]}"


def missed(seen: Seen, log: Log) -> First | None:
    if not seen.missed:
        return None
    return First(tuple(seen.missed), "never reached the monitored_barrier")


def by_file(seen: Seen, log: Log) -> First | None:
    """torchrun's error files: the earliest that is no consequence."""
    own = [f for f in log.error_files if not is_consequence(f.message)]
    found = [(f.second, f.rank) for f in own if f.rank is not None]
    if not found:
        return None
    earliest = min(second for second, _ in found)
    ranks = tuple(sorted({rank for second, rank in found if second == earliest}))
    why = "its error file is the earliest that doesn't just report a lost partner"
    return First(ranks, why)


def by_root(seen: Seen, log: Log) -> First | None:
    """torchrun's summary, unless what it saw first only lost a partner."""
    root = seen.root
    if root is None:
        return None
    ended = seen.codes.get(root) == -15
    lost = ended or (root in seen.lost and root not in seen.own)
    others = tuple(sorted(set(seen.own) - {root}))
    killed = tuple(r for r, c in sorted(seen.codes.items()) if c < 0 and c != -15)
    if lost and (others or killed):
        why = f"torchrun noticed rank {root} first, but that one only lost its partner"
        return First((others or killed)[:1], why)
    if lost:
        return None
    return First((root,), "torchrun saw it fail first: it is the Root Cause")


def by_own(seen: Seen, log: Log) -> First | None:
    """Ranks with an error of their own."""
    if not seen.own and seen.agent and seen.agent[0] not in seen.lost:
        rank, code = seen.agent
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        why = (
            f"torchrun's agent reports {how}; its number is the local rank of its node"
        )
        return First((rank,), why) if code != -15 else None
    if not seen.own:
        return None
    ranks = tuple(sorted(seen.own))
    if len(ranks) == 1:
        return First(ranks, "no other rank reports an error of its own")
    kinds = {line.text.split(":")[0] for line in seen.own.values()}
    if len(kinds) == 1:
        return First(ranks, "they report the same error, so no one of them was first")
    return First((next(iter(seen.own)),), "its error comes first in the log")


def by_number(seen: Seen, log: Log) -> First | None:
    """Ranks that timed out in different collectives: the last one holds up the rest."""
    seq_nums = seen.seq_nums
    if len(set(seq_nums.values())) < 2:
        return None
    least = min(seq_nums.values())
    ranks = tuple(sorted(rank for rank, n in seq_nums.items() if n == least))
    why = f"it is still in collective {least}, others in {max(seq_nums.values())}"
    return First(ranks, why, sure=False)


def by_silence(seen: Seen, log: Log) -> First | None:
    """All that report anything only waited: a rank that reports nothing is suspect."""
    waited = set(seen.lost) | set(seen.seq_nums)
    if not waited:
        return None
    silent = tuple(sorted((seen.ranks | set(range(max(waited)))) - waited))
    if not silent:
        who = listed(sorted(waited)) + (" all" if len(waited) > 1 else "")
        return First((), f"{who} waited, or lost a partner that had waited")
    why = (
        f"no error in the log, but {listed(sorted(waited))} lost the connection to it "
        "or waited for it"
    )
    return First(silent, why, sure=False)
