"""Which rank failed first, and why that is believed.

When one rank fails, those that communicate with it fail soon after. Their errors are
*consequences*: they lost a partner, or their launcher ended them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from workshop.diagnose.endings import (
    Ending,
    killed_together,
    only_ended,
    read_endings,
)
from workshop.diagnose.kinds import CODE, EXCEPTION, NOISE, SURVIVED
from workshop.diagnose.lines import Line
from workshop.diagnose.logs import Log
from workshop.diagnose.ranks import First, listed
from workshop.diagnose.summary import OF_RANK
from workshop.diagnose.watchdog import Dump, behind, mismatch, read_dump

CONSEQUENCE = re.compile(
    r"Connection (?:closed|reset) by (?:remote )?peer|Broken pipe|"
    r"Timed out waiting \d+ ?ms for|Application timeout caused pair closure|"
    r"SIGTERM|Signal 15|got signal: 15|Received 15 death signal|"
    r"exit ?code *: *-15|return code = -15|"
    r"closing signal|Job step aborted|Terminating (?:StepId|job step)|"
    r"NCCL communicator (?:was|is) aborted|ncclRemoteError|remote process exited|"
    r"failed to recv, got 0 bytes|RendezvousClosedError|pair is not connected|"
    r"failed to send a keep-alive heartbeat|"
    r"Failed to execute operation \w+ from rank \d+, retcode 6|"
    r"ProcessGroupNCCL.cpp(?!.*CUDA error).*(?:taken? (?:the|your)|dump signal|"
    r"detected by watchdog|"
    r"terminated with exception|operations have failed or timed out)|"
    r"NCCL watchdog thread terminated|Timeout at NCCL work|"
    r"Watchdog caught collective operation timeout|"
    r"store->get\(.* got error|DistStoreError: Socket Timeout|"
    r"DistStoreError: wait timeout after \d+ ?ms, keys: (?!/default_pg)|"
    r"keys: /default_pg/\d+//cuda//|NCCL WARN .*remote peer|with (?:status|error)=?5\b|"
    r"peer process has unexpectedly disconnected|Horovod has been shut down|"
    r"DUE TO TASK FAILURE|Sending process \d+ closing|"
    r"srun: error: .*: (?:Terminated|Killed)$|\brank \d+ exited with code 143$",
    re.IGNORECASE,
)
WAITS_FOR = re.compile(
    r"^.*?\[(\d+)\] is setting up NCCL communicator .* from \[(\d+)\] via c10d .*"
    r"store->get\('[^']*'\) got error: (.*)"
)
LATE = re.compile(r"Socket Timeout|[Ww]ait timeout|Timeout waiting for key")
OF_LAUNCHERS = re.compile(
    r"ChildFailedError|CalledProcessError|Process(?:Exited|Raised)Exception|"
    r"TrainingFailedError|"
    r"ray\.exceptions\.(?:Ray(?:Task|Actor)Error|ActorDiedError|WorkerCrashedError)"
)
CLOSES = re.compile(r"Sending process \d+ closing signal")
RENDEZVOUS = re.compile(r"\bRendezvous\w*Error\b")  # of torchrun's agent
# what the watchdog found on the GPU of its own rank
OF_ITS_GPU = re.compile(r"ProcessGroupNCCL\.cpp.*terminated with exception: CUDA error")
ROOT = re.compile(r"Root Cause \(first observed failure\)")
BLOCK_CODE = re.compile(r"^\s+exitcode\s*: (-?\d+)")
AGENT = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+)")
# DeepSpeed's launcher, and torch.distributed.launch
CHILD = re.compile(
    r"--local[-_]rank[= ',]+(\d+)\b.*(?:exits with return code = (-?\d+)|"
    r"returned non-zero exit status (\d+)|died with <Signals\.\w+: (\d+)>)"
)
# between two exceptions of one traceback
CHAINED = re.compile(
    r"^(?:During handling of the above|The above exception was the direct cause of)"
)
BEGINS = re.compile(r"^\s*Traceback \(most recent call last\)")
OLD_LAUNCHER = "the launcher"
# Ray tells of an actor that died, and names its process below
ACTOR_DIED = re.compile(r"\bRayActorError\b|\bActorDiedError\b")
PROCESS_OF_ACTOR = re.compile(r"^\s+pid: (\d+)$")
SPAWN = re.compile(
    r"(?:Process|process) (\d+) terminated with (?:signal \w+|exit code \d+)|"
    r"\bRank (\d+) crashed with exit code (?!-15)"  # Composer's launcher
)
SPAWN_RAISED = re.compile(r"^-- Process (\d+) terminated with the following error")
STEP = re.compile(r"^srun: error: \S+: tasks? ([\d,-]+): (.*)")
NOTICED = re.compile(r"noticed that process rank (\d+) with PID \d+.* exited on signal")
NAMED_BY_MPI = re.compile(r"^\s+Process name: \[\[\d+,\d+\],\s*(\d+)\]")
CANCELLED = re.compile(r"CANCELLED AT|DUE TO (?:TIME LIMIT|PREEMPTION|JOB REQUEUE)")
MISSED = re.compile(r"Ranks? ([\d, ]+) failed to pass monitoredBarrier")
FINGERPRINTS = re.compile(
    r"Rank (\d+) is running collective: \w+\(SequenceNumber=\d+, OpType=(\w+).*"
    r" but Rank (\d+) is running collective: \w+\(SequenceNumber=\d+, OpType=(\w+)"
)
REACHED = re.compile(r"Rank (\d+) successfully reached monitoredBarrier")
SIZE = re.compile(
    r"(?:WORLD_SIZE|world_size|nproc[-_]per[-_]node)[=: ]+(\d+)"
    r"(?!\d| *(?:[!=]=|[*x/%]))"  # no part of an equation
)
ABORT = -6  # the signal by which a rank ends itself, also after it has waited
MOST_RANKS = 4096  # more are a number that means something else


@dataclass
class Seen:
    """What the log says of each rank, in the order of the log."""

    own: dict[int, Line] = field(default_factory=dict)
    lost: dict[int, Line] = field(default_factory=dict)
    exited: dict[int, Line] = field(
        default_factory=dict
    )  # launchers say no more of them
    ended: dict[int, Line] = field(default_factory=dict)  # by the launcher of MPI
    cleaned: set[Line] = field(default_factory=set)  # that say so
    killed: list[int] = field(default_factory=list)  # by it, or one of them before
    together: set[Line] = field(default_factory=set)  # that say so
    warned: dict[int, Line] = field(default_factory=dict)  # NCCL did, of its own
    warned_first: Line | None = None  # the first time in a line that names no rank
    codes: dict[int, int] = field(default_factory=dict)
    root: int | None = None
    agent: tuple[int, int] | None = None  # (local rank, exit code)
    launcher: str = "torchrun's agent"  # which told it
    missed: list[int] = field(default_factory=list)
    dump: Dump = field(default_factory=Dump)  # of the watchdogs
    waited_for: dict[int, Line] = field(default_factory=dict)  # by a key's name
    unmarked: Line | None = None  # the first exception in a line without a rank
    spoke: set[int] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)


def is_consequence(text: str) -> bool:
    return bool(CONSEQUENCE.search(text))


def is_own_error(line: Line) -> bool:
    """Whether a traceback ends here that isn't due to another rank or a launcher."""
    if line.kind != EXCEPTION or OF_LAUNCHERS.search(line.text):
        return False
    return not is_consequence(line.text)


def first_failed(log: Log) -> First | None:
    """The rank that failed first; several if nothing tells them apart; or None."""
    seen = look(log)
    for answer in (
        missed,
        by_fingerprint,
        by_file,
        by_root,
        by_agent,
        by_own,
        by_killed,
        by_unmarked,
        by_mismatch,
        by_number,
        by_key,
        by_warning,
        by_silence,
    ):
        found = answer(seen, log)
        if found:
            return found
    return None


def look(log: Log) -> Seen:
    """What all lines say of each rank; they are read once."""
    if not isinstance(log.seen, Seen):
        log.seen = read_ranks(log)
    return log.seen


def read_ranks(log: Log) -> Seen:
    """One pass over all lines."""
    lines = [line for line in log.lines if line.kind not in (NOISE, CODE)]
    endings = read_endings(lines)
    ended = ended_by_launcher(lines, endings)
    seen = Seen(
        ended={each.rank: each.line for each in ended},
        cleaned={each.line for each in ended},
        together=killed_together(endings),
        spoke={line.rank for line in log.lines if line.rank is not None},
        dump=read_dump(lines),
    )
    reader = Reader(seen, {each.line: each for each in endings if each not in ended})
    for line in lines:
        if line.kind != SURVIVED and line not in seen.cleaned:
            reader.read(line)
    seen.own = seen.own or dict(seen.exited)
    return seen


def end_of_chain(error: Line, lines: list[Line]) -> Line:
    """The last of the exceptions that were raised from this one, or handling it."""
    chain = chain_from(error, lines)
    return chain[-1]


def chain_from(error: Line, lines: list[Line]) -> list[Line]:
    """This exception, and those that a rank raised from it, one from the other."""
    chain = [error]
    if error.kind != EXCEPTION or error not in lines:
        return chain
    chained = False
    for line in lines[lines.index(error) + 1 :]:
        if line.rank != error.rank or line.kind == CODE:
            continue
        if CHAINED.search(line.text):
            chained = True
        elif line.kind == EXCEPTION and chained and is_own_error(line):
            chain.append(line)
            chained = False
        elif line.kind == EXCEPTION or (not chained and BEGINS.search(line.text)):
            break
    return chain


def ended_by_launcher(lines: list[Line], endings: list[Ending]) -> list[Ending]:
    """The ranks that MPI's launcher ended after another one had failed."""
    return only_ended(endings, any(map(is_own_error, lines))) if endings else []


@dataclass
class Reader:
    """Reads lines in their order, and knows what a line is a part of."""

    seen: Seen = field(default_factory=Seen)
    endings: dict[Line, Ending] = field(default_factory=dict)
    at_root: bool = False  # in the part of torchrun's summary named Root Cause
    block: int | None = None  # the rank whose part of the summary was last read
    raised: int | None = None  # the rank of mp.spawn whose traceback was announced
    cancelled: bool = False  # the job was: what ends after that has not failed
    chained: set[int | None] = field(default_factory=set)  # ranks: one more follows
    over: set[int | None] = field(default_factory=set)  # ranks: no more follows
    died: Line | None = None  # Ray's word of an actor, whose process follows
    ranks_of: dict[int, int] = field(default_factory=dict)  # process -> its rank

    def read(self, line: Line) -> None:
        """Note what the line says of ranks."""
        text = line.text
        self.cancelled = self.cancelled or bool(CANCELLED.search(text))
        goes_on = self.at_root and not text.startswith("====")
        self.at_root = goes_on or bool(ROOT.search(text))
        self._chain(line)
        for knows in (
            self._summary_of_a_rank,
            self._exit_code,
            self._agent,
            self._child,
            self._actor,
            self._spawn,
            self._srun,
            self._ending,
            self._monitored_barrier,
            self._world_size,
        ):
            if knows(line):
                break
        self._error_of_a_rank(line)

    def _summary_of_a_rank(self, line: Line) -> bool:
        """torchrun's summary begins to tell of a rank."""
        match = OF_RANK.match(line.text)
        if not match:
            return False
        self.block = int(match[1])
        self.seen.ranks.add(self.block)
        if self.at_root and self.seen.root is None:
            self.seen.root = self.block
        return True

    def _exit_code(self, line: Line) -> bool:
        """With which status the rank of the summary has ended."""
        match = BLOCK_CODE.match(line.text)
        if not match or self.block is None:
            return False
        self.seen.codes.setdefault(self.block, int(match[1]))
        return True

    def _agent(self, line: Line) -> bool:
        """The first rank that an agent of torchrun found dead."""
        match = AGENT.search(line.text)
        if not match or self.seen.agent is not None:
            return False
        self.seen.agent = int(match[2]), int(match[1])
        return True

    def _child(self, line: Line) -> bool:
        """The command of the first child that an older launcher found dead."""
        match = CHILD.search(line.text)
        if not match or self.seen.agent is not None:
            return False
        status, signal = match[2] or match[3], match[4]
        self.seen.agent = int(match[1]), int(status) if status else -int(signal)
        self.seen.launcher = OLD_LAUNCHER
        return True

    def _actor(self, line: Line) -> bool:
        """Ray names the process of an actor that died; its rank, other lines told."""
        if line.process is not None and line.rank is not None:
            self.ranks_of.setdefault(line.process, line.rank)
        if ACTOR_DIED.search(line.text):
            self.died = line
        match = PROCESS_OF_ACTOR.match(line.text)
        if not match or self.died is None or int(match[1]) not in self.ranks_of:
            return False
        self.seen.own.setdefault(self.ranks_of[int(match[1])], self.died)
        self.died = None
        return True

    def _spawn(self, line: Line) -> bool:
        """mp.spawn or mpirun names a rank that has failed."""
        match = SPAWN_RAISED.match(line.text)
        if match:
            self.raised = int(match[1])
            return True
        match = first_of(line.text, SPAWN, NOTICED, NAMED_BY_MPI)
        if match:
            rank = next(filter(None, match.groups()))
            self.seen.own.setdefault(int(rank), line)
        return bool(match)

    def _srun(self, line: Line) -> bool:
        """srun names tasks that have ended, of themselves or not."""
        match = STEP.match(line.text)
        if not match:
            return False
        if not self.cancelled and not is_consequence(line.text):
            only_exited = match[2].startswith("Exited with exit code")
            said = self.seen.exited if only_exited else self.seen.own
            # a rank aborts itself when it has waited for too long
            aborted = "Aborted" in match[2]
            for rank in tasks(match[1]):
                if not (aborted and rank in self.seen.lost):
                    said.setdefault(rank, line)
        return True

    def _ending(self, line: Line) -> bool:
        """MPI's launcher says how a rank ended."""
        ending = self.endings.get(line)
        if ending is None or ending.code == 0:
            return False
        aborted = ending.code == ABORT and ending.rank in self.seen.lost
        if line in self.seen.together:
            self.seen.killed.append(ending.rank)
        elif not aborted:
            said = self.seen.own if ending.code < 0 else self.seen.exited
            said.setdefault(ending.rank, line)
        return True

    def _monitored_barrier(self, line: Line) -> bool:
        """Which ranks never reached the barrier; the first such line counts."""
        if reached := REACHED.search(line.text):
            self.seen.spoke.add(int(reached[1]))
        match = MISSED.search(line.text)
        if match and not self.seen.missed:
            self.seen.missed = [int(number) for number in match[1].split(",")]
        return bool(match)

    def _world_size(self, line: Line) -> bool:
        """How many ranks there are, in whatever line says it."""
        match = SIZE.search(line.text)
        if match:
            self.seen.ranks.update(range(min(int(match[1]), MOST_RANKS)))
        return bool(match)

    def _error_of_a_rank(self, line: Line) -> None:
        """A rank's first error of its own, or that it lost a partner."""
        rank = self.raised if line.rank is None else line.rank
        warns = "NCCL WARN" in line.text and not is_consequence(line.text)
        if warns and rank is None and self.seen.warned_first is None:
            self.seen.warned_first = line
        waits = WAITS_FOR.match(line.text)
        if waits and LATE.search(waits[3]):
            self.seen.waited_for.setdefault(int(waits[2]), line)
        if waits and rank is None:
            rank = int(waits[1])
        if rank is None:
            of_agent = RENDEZVOUS.search(line.text)
            if self.seen.unmarked is None and is_own_error(line) and not of_agent:
                self.seen.unmarked = line
            return
        self.seen.ranks.add(rank)
        if warns:
            self.seen.warned.setdefault(rank, line)
        if is_consequence(line.text):
            self.seen.lost.setdefault(rank, line)
        elif is_own_error(line) or OF_ITS_GPU.search(line.text):
            self._own_error(rank, line)

    def _chain(self, line: Line) -> None:
        """Whether the next exception of this rank comes of the one before."""
        if CHAINED.search(line.text):
            self.chained.add(line.rank)
        elif BEGINS.search(line.text) and line.rank not in self.chained:
            self.over.update({line.rank} & set(self.seen.own))

    def _own_error(self, rank: int, line: Line) -> None:
        """A rank's first error, or the last one of those that came of it."""
        if rank in self.chained - self.over:
            self.seen.own[rank] = line
        self.seen.own.setdefault(rank, line)
        self.chained.discard(rank)


def first_of(text: str, *patterns: re.Pattern[str]) -> re.Match[str] | None:
    """The match of the first of these that is found."""
    found = (pattern.search(text) for pattern in patterns)
    return next(filter(None, found), None)


def tasks(text: str) -> list[int]:
    """``2-4,7`` of srun -> 2, 3, 4, 7."""
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        last = high if high.isdigit() else low
        if low.isdigit():
            found += range(int(low), int(last) + 1)
    return found[:MOST_RANKS]


def missed(seen: Seen, log: Log) -> First | None:
    if not seen.missed:
        return None
    return First(tuple(seen.missed), "never reached the monitored_barrier")


def by_fingerprint(seen: Seen, log: Log) -> First | None:
    """Two ranks whose calls differ, as TORCH_DISTRIBUTED_DEBUG=DETAIL compares them."""
    found = (FINGERPRINTS.search(line.text) for line in log.lines)
    told = next(filter(None, found), None)
    if told is None or told[2] != told[4]:
        return None
    who = listed(sorted({int(told[1]), int(told[3])}))
    return First((), f"{who} called {told[2]} with tensors that differ")


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
    codes = sorted(seen.codes.items())
    killed = tuple(r for r, c in codes if c < 0 and c != -15 and r not in seen.lost)
    if lost and (others or killed):
        why = f"torchrun noticed rank {root} first, but that one only lost its partner"
        return First((others or killed)[:1], why)
    if lost:
        return None
    return First((root,), "torchrun saw it fail first: it is the Root Cause")


def by_agent(seen: Seen, log: Log) -> First | None:
    """The process that a launcher found dead, where no rank tells its error."""
    if seen.own or seen.root is not None or seen.agent is None:
        return None
    local, code = seen.agent
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    said = f"{seen.launcher} reports {how}"
    if has_one_rank(seen, log):
        rank, why = next(iter(seen.spoke)), f"{said} of its only rank"
    else:
        rank, why = local, f"{said}; its number is the local rank of its node"
    if code in (0, -15) or rank in seen.lost:
        return None
    if seen.launcher == OLD_LAUNCHER and not (seen.unmarked or is_killed(code)):
        return None  # a rank aborts itself also when it has waited for too long
    times = times_raised(seen.unmarked, log)
    if seen.launcher == OLD_LAUNCHER and times > 1:
        said = f"the same error is there {times} times, in lines that name no rank"
        return First((), said)
    return First((rank,), why)


def times_raised(error: Line | None, log: Log) -> int:
    """How many processes seem to have raised it."""
    if error is None:
        return 0
    return sum(row.text == error.text and row.kind == EXCEPTION for row in log.lines)


def is_killed(code: int) -> bool:
    """Whether a signal ended it that a rank doesn't send itself."""
    return code < 0 and code != ABORT


def has_one_rank(seen: Seen, log: Log) -> bool:
    """Whether an agent seems to have one process: that is local rank 0, whatever rank.

    It ended no other one, and all lines that name a rank name the same.
    """
    others = any(CLOSES.search(line.text) for line in log.lines)
    of_first = seen.agent is not None and seen.agent[0] == 0
    return of_first and len(seen.spoke) == 1 and not others


def by_own(seen: Seen, log: Log) -> First | None:
    """Ranks with an error of their own."""
    if not seen.own:
        return None
    ranks = tuple(sorted(seen.own))
    several = len(ranks) > 1
    if several and seen.own == seen.exited:
        return of_launcher(ranks, seen.own[ranks[0]])
    kinds = {line.text.split(":")[0] for line in seen.own.values()}
    if several and len(kinds) == 1:
        return First(ranks, "they report the same error, so no one of them was first")
    rank = next(iter(seen.own))
    place = log.lines.index
    warned = [r for r, row in seen.warned.items() if place(row) < place(seen.own[rank])]
    if set(warned) - {rank}:
        said = listed(sorted({*warned, *ranks}))
        return First((), f"{said} report errors, and nothing tells which was first")
    if several:
        return First((rank,), "its error comes first in the log")
    if ACTOR_DIED.search(seen.own[rank].text):
        return First(ranks, "Ray says that its process died")
    return First(ranks, "no other rank reports an error of its own")


def by_killed(seen: Seen, log: Log) -> First | None:
    """Ranks that SIGKILL ended: one of them, and then MPI's launcher the others."""
    if not seen.killed:
        return None
    who = listed(sorted(set(seen.killed)))
    return First((), f"{who} were killed, and the launcher kills all when one ends")


def of_launcher(ranks: tuple[int, ...], said: Line) -> First:
    """Ranks of which a launcher says that they exited, and no line says why."""
    who = "srun" if STEP.match(said.text) else "the launcher"
    if set(ranks) == set(range(max(ranks) + 1)):
        return First((), f"{who} says only that {listed(ranks)} exited, in no order")
    return First(ranks, f"{who} says that they exited, and of no other one")


def by_unmarked(seen: Seen, log: Log) -> First | None:
    """Ranks only waited, and a process without a mark raised its own exception."""
    if not lead(seen):
        return None
    silent = silent_ranks(seen)
    if len(silent) == 1:
        why = (
            "the others waited, and an exception in lines without a rank may be its own"
        )
        return First(silent, why, sure=False)
    return First((), "the exception below is in lines that name no rank")


def lead(seen: Seen) -> Line | None:
    """The exception of a process that others waited for, if no line names its rank."""
    return seen.unmarked if seen.lost and not seen.own else None


def by_mismatch(seen: Seen, log: Log) -> First | None:
    """Two ranks that made different calls: neither of them was first."""
    found = mismatch(seen.dump)
    if found is None:
        return None
    one, other = sorted(found, key=lambda call: call.rank)
    return First((), f"as collective {one.number}, {one}, and {other}")


def by_number(seen: Seen, log: Log) -> First | None:
    """Ranks that didn't reach the collective in which others of their group wait."""
    found = behind(seen.dump)
    return First(*found, sure=False) if found else None


def by_key(seen: Seen, log: Log) -> First | None:
    """The key that ranks waited for in the store names the rank that is to set it."""
    ranks = tuple(sorted(set(seen.waited_for) - set(seen.lost)))
    if not ranks:
        return None
    why = "the others waited for its key in the store"
    return First(ranks, why, sure=False)


def by_warning(seen: Seen, log: Log) -> First | None:
    """All ranks only waited, and NCCL had told of an error of another process."""
    if not seen.lost or seen.warned_first is None:
        return None
    return First((), "NCCL's first error is in a line that names no rank")


def by_silence(seen: Seen, log: Log) -> First | None:
    """All that report anything only waited: a rank that reports nothing is suspect."""
    waited = set(seen.lost)
    if not waited or seen.dump.subgroups:
        return None
    silent = silent_ranks(seen)
    if not silent:
        who = listed(sorted(waited)) + (" all" if len(waited) > 1 else "")
        return First((), f"{who} waited, or lost a partner that had waited")
    why = (
        f"no error in the log, but {listed(sorted(waited))} lost the connection to it "
        "or waited for it"
    )
    return First(silent, why, sure=False)


def silent_ranks(seen: Seen) -> tuple[int, ...]:
    """Those that must exist, and report nothing where others waited."""
    waited = set(seen.lost)
    of_one_rank = len(waited | seen.spoke | seen.ranks) == 1  # the log, or all of it
    known = seen.ranks if of_one_rank else seen.ranks | set(range(max(waited)))
    return tuple(sorted(known - waited))
