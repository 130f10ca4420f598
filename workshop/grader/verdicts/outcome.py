"""What is run, and what was seen of it: both cross a socket as one line of JSON.

The engine sends a :class:`Job` to the supervisor, which answers with an
:class:`Outcome`. Verdicts are made of the two, and of nothing else.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Job:
    """One check on one file, with the limits that its ranks get."""

    exercise: str  # the name of the learner's module
    exercise_path: str  # as tracebacks and verdicts show it
    source: str  # its text
    check_path: str  # the file with the check
    function: str  # the check's name in that file
    sentence: str  # the first line of its docstring
    page: str  # which explains the exercise, or ""
    world_size: int
    seed: int  # of the check's inputs
    init: bool  # whether the process group exists when the check begins
    limit: float  # seconds for each rank
    memory_bytes: int  # for each rank, beside those of torch
    output_bytes: int  # that each rank may print
    file_bytes: int  # that each file may have
    hidden: list[str] = field(default_factory=list)  # folders that ranks can't see
    scheduler: dict[str, Any] | None = None  # arguments of cluster/jobs' Scheduler
    # The supervisor fills in the rest.
    isolated: bool = False  # whether ranks get a world of their own
    private: str = ""  # a folder for the supervisor and the ranks' traces
    folder: str = ""  # the ranks' common working folder
    store: str = ""  # the file through which the ranks meet

    def as_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Job:
        return cls(**json.loads(line))


@dataclass(frozen=True)
class RankSeen:
    """One rank at the end of a run. Messages are those of ``engine/channel.py``."""

    rank: int
    report: dict[str, Any] | None  # its last message
    leaving: dict[str, Any] | None  # how and where it called os._exit or the like
    stuck: dict[str, Any] | None  # where it was when the run was ended
    ended: int | None  # exit status, negative for a signal; None while it lived
    calls: list[dict[str, Any]]  # its first ones, if it sent neither report nor stuck
    crash_line: int | None  # of the learner's file
    phase: float  # a constant of engine/channel.py: LOADING, CHECKING ...
    printed: int  # bytes
    output: str  # what it printed, the middle left out
    resident: int  # bytes of memory at the end, beside torch's; 0 if it had ended


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    why: str = ""  # done, deadlock, failed, deadline, output, memory
    seconds: float = 0.0
    left_running: list[str] = field(default_factory=list)  # commands of processes
    ranks: list[RankSeen] = field(default_factory=list)
    broken: str = ""  # a fault of the grader itself, which is all there is then

    def as_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Outcome:
        fields = json.loads(line)
        ranks = [RankSeen(**seen) for seen in fields.pop("ranks")]
        return cls(ranks=ranks, **fields)
