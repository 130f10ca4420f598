"""What the grader says: one kind, at most 15 lines, and the details behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

MAX_LINES = 15


class Kind(str, Enum):
    """The verdicts, in the order in which they are tried."""

    ENVIRONMENT = "environment broken"
    NOT_STARTED = "not started"
    NOT_LOADED = "does not load"
    UNFINISHED = "unfinished"
    NOT_A_SOLUTION = "not a solution"
    CRASH = "crash"
    EXCEPTION = "exception"
    HANG = "hang"
    LIMIT = "over the limit"
    LEFT_EARLY = "left early"
    LEDGER = "ranks disagree"
    WRONG_VALUE = "wrong value"
    LEFT_RUNNING = "left running"
    WRONG_WAY = "wrong way"
    RIGHT = "right"

    @property
    def status(self) -> str:
        """``right``, ``wrong``, ``not started`` or ``environment``."""
        special = {
            Kind.RIGHT: "right",
            Kind.NOT_STARTED: "not started",
            Kind.ENVIRONMENT: "environment",
        }
        return special.get(self, "wrong")


EXIT_STATUS = {"right": 0, "wrong": 1, "not started": 2, "environment": 3}


@dataclass
class Verdict:
    """The outcome of one check function in fresh ranks.

    ``lines`` is the message a learner reads (at most 15 lines); ``details`` is
    everything else that was seen (shown with ``-v``): ledgers, stacks, output.
    """

    kind: Kind
    lines: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    suspicion: str = ""
    page: str = ""
    check: str = ""
    world_size: int = 0
    seed: int = 0
    seconds: float = 0.0

    @property
    def message(self) -> str:
        return "\n".join(self.lines[:MAX_LINES])


@dataclass
class Result:
    """The outcome of an exercise: the verdicts of its checks, the worst first."""

    exercise: str
    verdicts: list[Verdict]
    seconds: float = 0.0
    planned: int = 0  # checks there are; fewer ran if it stopped at the first failure

    @property
    def verdict(self) -> Verdict:
        """The first verdict that is not ``right``, else the last one."""
        wrong = [v for v in self.verdicts if v.kind is not Kind.RIGHT]
        return (wrong or self.verdicts)[0]

    @property
    def status(self) -> str:
        return self.verdict.kind.status

    @property
    def passed(self) -> bool:
        return self.status == "right"
