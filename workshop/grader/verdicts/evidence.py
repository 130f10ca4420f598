"""What the ranks of one check did, and the sentences that tell it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from workshop.grader.verdicts.outcome import Job, Outcome, RankSeen
from workshop.grader.verdicts.verdict import Kind
from workshop.grader.verdicts.wording import WIDTH, call_text, ranks_text

_PLACE = re.compile(r"^\s*what\(\):\s*|\[enforce fail at [^\]]*\]\s*")
WRONG_VALUE_WIDTH = 70

CONSEQUENCES = (
    "Connection closed by peer",
    "Connection reset",
    "Broken pipe",
    "Application timeout caused pair closure",
    "Timed out waiting",
    "Socket closed",
)


@dataclass(frozen=True)
class Finding:
    """The answer to a question that makes it the verdict.

    Attributes:
        lines: of the message; the first one stands behind the kind.
        suspicion: the key of the classic mistake that it resembles, or "".
    """

    kind: Kind
    lines: list[str]
    suspicion: str = ""


class Rank:
    """One rank, as the supervisor saw it.

    Attributes:
        report: its final word, {} if there was none: ``status`` is ok, mismatch,
            raised, exit or broken.
        leaving: how and where it called ``os._exit`` or the like, or {}.
        stuck: where it was when the run was ended, or {}.
        ended: its exit status, negative for a signal; None while it lived.
        crash_line: the line of the learner's file where it crashed, or None.
    """

    def __init__(self, seen: RankSeen):
        self.number = seen.rank
        self.report = seen.report or {}
        self.leaving = seen.leaving or {}
        self.stuck = seen.stuck or {}
        self.ended = seen.ended
        self.crash_line = seen.crash_line
        self.phase = seen.phase
        self.printed = seen.printed
        self.output = seen.output
        self.resident = seen.resident
        self._told = seen.calls  # of one that crashed

    @property
    def status(self) -> str:
        return self.report.get("status", "")

    @property
    def unended(self) -> bool:
        """It neither reported nor ended."""
        return not self.report and self.ended is None

    @property
    def left(self) -> bool:
        """It ended by itself before the check was done."""
        silent = self.ended is not None and self.ended >= 0 and not self.report
        return self.status == "exit" or silent

    @property
    def calls(self) -> list[dict]:
        """The rows of its ledger."""
        return (self.report or self.stuck).get("ledger") or self._told

    @property
    def ended_by(self) -> str:
        """How the check's last call of the learner's functions ended if it raised."""
        return (self.report or self.stuck).get("ended_by") or ""

    @property
    def unwaited(self) -> list[dict]:
        """The rows of its asynchronous calls without a wait, now or later."""
        rows = (self.report or self.stuck).get("unwaited") or []
        returned = self.status in ("ok", "mismatch")
        return [row for row in rows if returned or row["dropped"]]

    def used(self, how: str) -> list[dict]:
        """The rows of its calls whose tensor it changed, or read, before it waited."""
        rows = self.report.get("used_early") or []
        return [row for row in rows if row["did"] == how]

    @property
    def call(self) -> dict | None:
        """What it waits in: the call of the Work it waits for, or its last call.

        None if it left the line of that call for another one.
        """
        if waits_for := self.stuck.get("waits_for"):
            return waits_for
        last = self.calls[-1] if self.calls else None
        at = self.stuck.get("line")
        if last and at and (last["line"] not in (None, at) or self._is_over(last)):
            return None
        return last

    def _is_over(self, row: dict) -> bool:
        """Whether the check made this call before it called the learner's function."""
        stack = self.stuck["stack"]
        own = [number for number, frame in enumerate(stack) if frame["own"]]
        file = row["where"].partition(":")[0]
        if row["line"] or not file or not own:
            return False
        return all(frame["file"] != file for frame in stack[: own[0]])

    @property
    def frame(self) -> dict:
        """The innermost frame in the learner's file at its exception, or {}."""
        own = [f for f in self.report.get("frames", []) if f["own"]]
        return own[-1] if own else {}

    @property
    def caller(self) -> dict:
        """The line of the learner's file that called the function of ``frame``, or {}.

        The function may be right, and what it was given wrong.
        """
        own = [f for f in self.report.get("frames", []) if f["own"]][-2:]
        names = {f["function"] for f in own if not f["function"].startswith("<")}
        return own[0] if len(names) == 2 else {}

    @property
    def fault(self) -> bool:
        """It raised in the check's own code: no line of the learner is to blame."""
        return self.status == "raised" and bool(self.report.get("fault"))

    @property
    def mismatch(self) -> dict | None:
        """Its report as a wrong value; a plain failed assert of the check is one."""
        if self.status == "mismatch":
            return self.report
        plain = self.status == "raised" and self.report["type"] == "AssertionError"
        if plain and not self.frame and not self.fault:
            return {"what": "", "problem": self.report["message"], "suspicion": ""}
        return None

    @property
    def last_output(self) -> list[str]:
        """Its last line, without the place in gloo's source that said it."""
        lines = [line for line in self.output.strip().splitlines() if line.strip()]
        told = _PLACE.sub("", lines[-1]).strip() if lines else ""
        return [f"    it last printed: {told[:WIDTH]}"] if told else []


class Evidence:
    """What :mod:`workshop.grader.engine.supervisor` saw of one check.

    Attributes:
        job: what was run.
        why: why the run ended: done, deadlock, failed, deadline, output, memory.
    """

    def __init__(self, job: Job, outcome: Outcome):
        self.job, self.outcome = job, outcome
        self.why = outcome.why
        self.ranks = [Rank(seen) for seen in outcome.ranks]
        self._source: list[str] = job.source.splitlines()

    @property
    def unended(self) -> list[Rank]:
        return [rank for rank in self.ranks if rank.unended]

    @property
    def raised(self) -> list[Rank]:
        return [rank for rank in self.ranks if rank.status == "raised"]

    @property
    def left(self) -> list[Rank]:
        return [rank for rank in self.ranks if rank.left]

    @property
    def all_ended_well(self) -> bool:
        return all(rank.status == "ok" for rank in self.ranks)

    @property
    def limit(self) -> str:
        return f"{self.job.limit:g} s"

    def is_consequence(self, report: dict) -> bool:
        """Whether a rank failed only because another one was gone."""
        someone_gone = any(rank.ended is not None for rank in self.ranks)
        text = report.get("message", "")
        return someone_gone and any(words in text for words in CONSEQUENCES)

    def place(self, line: int | None) -> dict:
        """A line of the learner's file, {} if there is none such."""
        if not line or line > len(self._source):
            return {}
        return {"line": line, "text": self._source[line - 1].strip()}

    # -- sentences ---------------------------------------------------------------
    def at(self, place: dict) -> list[str]:
        """`    line 41: dist.send(...)`, or nothing if the line is not known."""
        return [f"    {self._line(place)}"] if place.get("line") else []

    def raised_at(self, rank: Rank) -> list[str]:
        """The line that raised, and the one that called its function."""
        return self.at(rank.frame) + self.called_at(rank.caller)

    def called_at(self, place: dict) -> list[str]:
        """`    called at line 41: step(...)`, or nothing if the line is not known."""
        return [f"    called at {text.strip()}" for text in self.at(place)]

    def inline(self, place: dict) -> str:
        known = place.get("line")
        return f" at {self._line(place)}" if known else " (not in your file)"

    def _line(self, place: dict) -> str:
        text = place.get("text") or self.place(place["line"]).get("text", "")
        return f"line {place['line']}: {text}"

    def state_line(self, rank: Rank) -> str:
        """Where one rank is: a line of the message."""
        return f"  rank {rank.number}: {self._state(rank)}"

    def _state(self, rank: Rank) -> str:
        if rank.report:
            return self._state_of_reported(rank)
        if rank.ended is not None:
            return f"is gone (status {rank.ended})"
        if not rank.stuck:
            return "does not answer"
        place = self.inline(rank.stuck)
        if not rank.stuck["in_comm"]:
            return f"runs{place}"
        if rank.call:
            return f"waits in {call_text(rank.call, place='')}{place}"
        frames = rank.stuck["stack"]
        names = [f["function"] for f in frames if "c10d" in f["file"]]
        inner = next((n for n in names if n[0] != "_" and n != "wrapper"), "")
        if inner:
            return f"waits in {inner}{place}"
        return f"waits{place}"

    def _state_of_reported(self, rank: Rank) -> str:
        report = rank.report
        count = sum(row["line"] is not None for row in rank.calls)
        calls = f"{count} call{'s' * (count != 1)} of torch.distributed"
        if report["status"] == "ok":
            return f"done after {calls} in your code"
        if report["status"] == "raised" and self.is_consequence(report):
            return f"then lost the connection to it{self.inline(rank.frame)}"
        if report["status"] == "raised":
            return f"raised {report['type']}: {report['message'][:60]}"
        wrong = report.get("what") or report.get("problem", "")
        wrong = textwrap.shorten(wrong, WRONG_VALUE_WIDTH, placeholder=" ...")
        return f"went past it with a wrong value ({wrong}), after {calls}"

    def others(self, named: Iterable[int]) -> list[str]:
        """One line for each rank that the message has not named yet."""
        named = set(named)
        return [
            self.state_line(rank)
            for rank in self.ranks
            if rank.number not in named and rank.status != "ok"
        ]

    def who(self, ranks: list[int]) -> str:
        """``rank 2: ``; nothing where a check runs in one process."""
        return f"{ranks_text(ranks)}: " if self.job.world_size > 1 else ""
