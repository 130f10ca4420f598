"""What the grader says: one kind, at most 15 lines, and the details behind them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
    NOT_FULLY = "not fully checked"
    RIGHT = "right"

    @property
    def status(self) -> str:
        """``right``, ``wrong``, ``not started``, ``environment`` or, where this
        machine lacks what the decisive part needs, ``not fully checked``."""
        special = {
            Kind.RIGHT: "right",
            Kind.NOT_FULLY: "not fully checked",
            Kind.NOT_STARTED: "not started",
            Kind.ENVIRONMENT: "environment",
        }
        return special.get(self, "wrong")


# nothing in what was tried is wrong
NOTHING_WRONG = (Kind.RIGHT, Kind.NOT_FULLY)
EXIT_STATUS = {
    "right": 0,
    "wrong": 1,
    "not started": 2,
    "environment": 3,
    "not fully checked": 4,
}


@dataclass
class Verdict:
    """The outcome of one check function in fresh ranks.

    ``lines`` is the message a learner reads (at most 15 lines); ``details`` is
    everything else that was seen (shown with ``-v``): ledgers, stacks, output.
    ``untried`` is what decides and could not be tried on this machine, ``missing``
    what it would take, with the command that installs it.
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
    untried: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

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
        """The first that is wrong, else the first that isn't right, else the first."""
        wrong = [v for v in self.verdicts if v.kind not in NOTHING_WRONG]
        partial = [v for v in self.verdicts if v.kind is Kind.NOT_FULLY]
        if partial and not wrong:
            return not_fully_checked(partial)
        return (wrong or self.verdicts)[0]

    @property
    def status(self) -> str:
        return self.verdict.kind.status

    @property
    def passed(self) -> bool:
        return self.status == "right"


def not_fully_checked(partial: list[Verdict]) -> Verdict:
    """One verdict for all checks that could not try here what decides."""
    untried = dict.fromkeys(what for one in partial for what in one.untried)
    missing = dict.fromkeys(what for one in partial for what in one.missing)
    head = "nothing is wrong so far, but this could not be tried here:"
    lines = [f"{Kind.NOT_FULLY.value}: {head}"]
    lines += [f"  {what}" for what in untried]
    lines += [f"why: {what}" for what in missing]
    return replace(partial[0], lines=lines)
