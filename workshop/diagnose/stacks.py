"""Stacks of processes that hang, as py-spy dump and Python's faulthandler print them.

A hang leaves no error. What tells is where the main thread of each rank is: most wait
in a call for which they need the others, and one isn't there, or in another call.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePath

from workshop.diagnose.lines import Line
from workshop.diagnose.ranks import listed

PROCESS = re.compile(r"^Process (\d+): ")
THREAD = re.compile(
    r"^\s*(?:Current thread|Thread) (?P<number>(?:0x)?[0-9A-Fa-f]+)(?: \[[^\]]*\])? "
    r'\((?:most recent call first|idle|active)[^)]*\):?(?: "(?P<name>[^"]*)")?'
)
FRAMES = (
    re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>\S+)'),
    re.compile(r"^\s*(?P<function>\S.*) \((?P<file>[^()]+\.py):(?P<line>\d+)\)$"),
)
TIMEOUT = re.compile(r"^Timeout \(\d+:\d\d:\d\d")
RANK_IN_NAME = re.compile(r"(?:^|[^a-z])(?:rank|stacks?)[-_. ]?(\d+)", re.IGNORECASE)
MAIN_THREAD = "MainThread"
INSTALLED = re.compile(r"(?:site|dist)-packages/|/lib/python3|^<")
LIBRARIES = {
    *("torch", "torchvision", "torchdata", "torchft", "numpy", "transformers"),
    *("accelerate", "deepspeed", "lightning", "pytorch_lightning", "ray", "datasets"),
    *sys.stdlib_module_names,
}
# Calls in which a rank waits for others: the file, the function, what it's doing.
WAITS = (
    (r"distributed_c10d\.py$", r"^[a-z]\w*$", "in {function}"),
    (r"torch/distributed/rendezvous\.py$", r"", "in the rendezvous"),
    (r"torch/nn/parallel/distributed\.py$", r"sync|_pre_forward", "in DDP's forward"),
    # these wait for the collectives that backward or a kernel has started
    (r"torch/autograd/", r"backward", "in backward"),
    (r"torch/cuda/", r"synchronize", "in synchronize"),
)
PAIRS = {"in send", "in recv", "in isend", "in irecv", "in batch_isend_irecv"}
BUSY = (
    (r"torch/utils/data/", r"", "waits for its data loader"),
    (r"torch/(?:serialization|distributed/checkpoint/)", r"", "saves or loads"),
)


@dataclass(frozen=True)
class Frame:
    """One call; its file as the dump writes it."""

    function: str
    file: str
    line: int

    @property
    def is_own(self) -> bool:
        """Whether it's in the user's code, and not in a library."""
        if INSTALLED.search(self.file):
            return False
        package = PurePath(self.file).parts[0].removesuffix(".py")
        return package not in LIBRARIES


@dataclass
class Thread:
    """One thread of a dump, its innermost frame first."""

    number: str
    name: str
    frames: list[Frame] = field(default_factory=list)

    @property
    def runs_the_program(self) -> bool:
        return bool(self.frames) and self.frames[-1].function == "<module>"


@dataclass
class Dump:
    """The threads of one process at one moment."""

    file: str
    rank: int | None
    process: int | None = None
    threads: list[Thread] = field(default_factory=list)

    @property
    def main(self) -> Thread:
        """By its name, or the last one that runs the program: faulthandler's order."""
        named = [each for each in self.threads if each.name == MAIN_THREAD]
        running = [each for each in self.threads if each.runs_the_program]
        return (named or running or self.threads)[-1]

    def has_thread(self, number: str) -> bool:
        return any(thread.number == number for thread in self.threads)

    @property
    def who(self) -> str:
        if self.rank is not None:
            return f"rank {self.rank}"
        if self.process is not None:
            return f"process {self.process}"
        return self.file


@dataclass(frozen=True)
class Place:
    """Where a main thread is."""

    doing: str  # "in all_reduce", or "" if no call is known in which ranks wait
    waits: bool  # for other ranks
    frame: Frame  # the innermost one of the user's code

    @property
    def words(self) -> str:
        at = f"{PurePath(self.frame.file).name}:{self.frame.line}"
        where = f"{at} in {self.frame.function}"
        return f"{self.doing}, called at {where}" if self.doing else f"at {where}"


def dumps_in(lines: Iterable[Line]) -> list[Dump]:
    """The last dump of each process, in the order of the log."""
    by_writer: dict[tuple[str, int | None], list[Line]] = {}
    for line in lines:
        file = line.place.rpartition(":")[0]
        by_writer.setdefault((file, line.rank), []).append(line)
    return [
        dump
        for (file, rank), written in by_writer.items()
        for dump in dumps_of(file, rank, written)
    ]


def dumps_of(file: str, rank: int | None, lines: list[Line]) -> list[Dump]:
    """Those that one file has of one rank; of a process, the last one."""
    if rank is None:
        rank = rank_in_name(file)
    last: dict[int | None, Dump] = {}
    dump, thread = Dump(file, rank), None
    for line in lines:
        process = PROCESS.match(line.text)
        header = THREAD.match(line.text)
        frame = frame_of(line.text)
        if process:
            dump, thread = Dump(file, rank, int(process[1])), None
        elif TIMEOUT.match(line.text):
            dump, thread = Dump(file, rank), None
        elif header:
            if dump.has_thread(header["number"]):  # the same process, once more
                dump = Dump(file, rank, dump.process)
            thread = Thread(header["number"], header["name"] or "")
            dump.threads.append(thread)
            last[dump.process] = dump
        elif frame is not None and thread is not None:
            thread.frames.append(frame)
    return [each for each in last.values() if each.main.frames]


def rank_in_name(file: str) -> int | None:
    named = RANK_IN_NAME.search(PurePath(file).name)
    return int(named[1]) if named else None


def frame_of(text: str) -> Frame | None:
    for form in FRAMES:
        found = form.match(text)
        if found:
            function = found["function"].rpartition(".")[2]
            return Frame(function, found["file"], int(found["line"]))
    return None


def place_of(frames: list[Frame]) -> Place:
    own = next((frame for frame in frames if frame.is_own), frames[0])
    for table, waits in ((WAITS, True), (BUSY, False)):
        for file, function, doing in table:
            for frame in reversed(frames):  # the call that the program made
                if re.search(file, frame.file) and re.search(function, frame.function):
                    return Place(doing.format(function=frame.function), waits, own)
    return Place("", False, own)


def tell_stacks(dumps: list[Dump]) -> list[str]:
    """Those of a run that shows no failure."""
    heading = f"No failure, but stacks of {len(dumps)} processes. Main threads:"
    if len(dumps) == 1:
        heading = "No failure, but the stacks of one process. Its main thread:"
    return [heading, *where_they_are(dumps)]


def stacks_beside(dumps: list[Dump]) -> list[str]:
    """Those of ranks that have waited too long, beside what their log says."""
    if len(dumps) < 2:
        return []  # what one process does says little without the others
    heading = f"Main threads, in the stacks of {len(dumps)} processes:"
    return [heading, *where_they_are(dumps)]


def where_they_are(dumps: list[Dump]) -> list[str]:
    """Where each process is, and which of them to look at first."""
    groups: dict[Place, list[Dump]] = {}
    for dump in dumps:
        groups.setdefault(place_of(dump.main.frames), []).append(dump)
    told = [f"    {names(group)}: {place.words}" for place, group in groups.items()]
    return [*told, conclusion(groups)]


def names(dumps: list[Dump]) -> str:
    ranks = [dump.rank for dump in dumps if dump.rank is not None]
    if len(ranks) == len(dumps):
        return listed(sorted(ranks))
    return ", ".join(dump.who for dump in dumps)


def conclusion(groups: dict[Place, list[Dump]]) -> str:
    """What the stacks say together."""
    waiting = [place for place in groups if place.waits]
    busy = [place for place in groups if not place.waits]
    if sum(map(len, groups.values())) == 1:
        return (
            "Take the stacks of all other ranks, too. Look at the one that isn't in "
            "the same call"
        )
    if waiting and busy:
        first = names([dump for place in busy for dump in groups[place]])
        return (
            f"Look at {first} first: the others wait in a call that needs all of them. "
            "Take these stacks twice. If the line has changed, it's slow, and doesn't "
            "hang. On a GPU, a line that reads a result, such as .item(), waits, too"
        )
    if any(place.doing in PAIRS for place in waiting):
        return (
            "They wait in sends and receives: look for each one whether its partner is "
            "in the call that it needs"
        )
    if len(waiting) > 1:
        return (
            "They wait in different calls, so none of these can end. Find the line "
            "after which the ranks take different paths"
        )
    if waiting:
        return (
            "All wait in the same call. So one is missing whose stack isn't here, "
            "their shapes or groups differ, or the network delivers nothing"
        )
    return "None of them is in a call that waits for other ranks"
