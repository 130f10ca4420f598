"""How did the ranks end: by a signal, an exception, never, or too early?"""

from __future__ import annotations

import re

from workshop.grader.verdicts.classics import hangs
from workshop.grader.verdicts.classics.calls import of_calls_before_a_crash
from workshop.grader.verdicts.classics.exceptions import (
    of_crash,
    receives,
    takes_a_result,
    takes_a_sender,
)
from workshop.grader.verdicts.difference import (
    OF_MESSAGES,
    columns_of,
    first_difference,
    first_message_difference,
    other_tags,
)
from workshop.grader.verdicts.evidence import Evidence, Finding, Rank
from workshop.grader.verdicts.verdict import Kind
from workshop.grader.verdicts.wording import WIDTH, ranks_text

IS_ERROR = re.compile(r"\s*[\w.]+(Error|Exception|Interrupt| error): ").match
COLOR = re.compile(r"\x1b\[[\d;]*m")
SHOWN = WIDTH + 20  # of a long message; its decisive words may come late
ABORT = -6  # how gloo ends a rank whose messages do not fit
BROKEN_PIPE = -13  # and how it ends one that still sends to such a rank
SIGNALS = {
    -4: "SIGILL",
    -6: "SIGABRT",
    -7: "SIGBUS",
    -8: "SIGFPE",
    -9: "SIGKILL",
    -11: "SIGSEGV",
    -13: "SIGPIPE",
    -14: "SIGALRM",
    -15: "SIGTERM",
    -24: "SIGXCPU",
    -25: "SIGXFSZ",
}
MEANINGS = {
    -9: " (it killed itself, or the system ran out of memory)",
    -11: " (memory that is not its own was touched)",
    -14: " (the alarm it had set)",
    -6: " (abort, often after C++ said why)",
}


def crash(seen: Evidence) -> Finding | None:
    crashed = [r for r in seen.ranks if r.ended is not None and r.ended < 0]
    if not crashed:
        return None
    rank = min(crashed, key=lambda other: other.ended == BROKEN_PIPE)
    code = rank.ended or 0
    same = [r.number for r in seen.ranks if r.ended == code]
    were = "was" if len(same) == 1 else "were"
    name = SIGNALS.get(code, f"signal {-code}")
    head = f"{ranks_text(same)} {were} killed by {name}{MEANINGS.get(code, '')}"
    difference, suspicion = [], of_calls_before_a_crash(rank.calls)
    if code == ABORT and not suspicion:
        difference, suspicion = _first_difference(seen)
    place = rank.leaving if rank.leaving.get("line") else seen.place(rank.crash_line)
    lines = [head, *seen.at(place), *rank.last_output, *difference]
    suspicion = suspicion or of_crash(place.get("text", ""))
    return Finding(Kind.CRASH, lines + seen.others(same), suspicion)


def exception(seen: Evidence) -> Finding | None:
    """The first that is not a consequence of another rank's end."""
    own = [
        rank
        for rank in seen.raised
        if not (rank.fault or seen.is_consequence(rank.report))
    ]
    if not own:
        return None
    rank, report = own[0], own[0].report
    if not rank.frame and report["type"] == "AssertionError":
        return None  # a plain assert of the check: a wrong value
    same = [r.number for r in own if _headline(r.report) == _headline(report)]
    told = _message(report)
    who = f"{ranks_text(same)} raised " if len(seen.ranks) > 1 else ""
    lines = [f"{who}{report['type']}: {told[0]}"]
    lines += [f"    {line}" for line in told[1:4]]
    lines += seen.raised_at(rank)
    difference, suspicion = first_difference(seen)
    lines += difference + seen.others(same)
    named = report.get("suspicion", "")
    if named == "none_result" and not takes_a_result(seen.job.source):
        named = ""  # some other None
    if named == "no_gradient" and not receives(seen.job.source):
        named = ""  # nothing was received
    if not named and takes_a_sender(seen.job.source, report["message"]):
        named = "result_of_recv"
    return Finding(Kind.EXCEPTION, lines, named or suspicion)


def _headline(report: dict) -> tuple[str, str]:
    """What ranks have in common that fail alike; other lines may name their values."""
    return report["type"], report["message"].strip().partition("\n")[0]


def _message(report: dict) -> list[str]:
    text = COLOR.sub("", report["message"]).strip() or "(without a message)"
    told = [line for line in text.splitlines() if line.strip()]
    if inner := [line.strip() for line in told[1:] if IS_ERROR(line)]:
        told = [told[0], inner[0]]  # not the traceback or the advice before it
    if len(told[0]) > 2 * WIDTH:
        told[0] = f"{told[0][:SHOWN]}... ({report['length']:,} characters)"
    return told


def hang(seen: Evidence) -> Finding | None:
    if seen.why not in ("deadlock", "failed", "deadline"):
        return None
    blocked = [rank for rank in seen.unended if rank.stuck.get("in_comm")]
    if seen.why == "deadline" and len(blocked) < len(seen.unended):
        return None  # some rank computes: an endless loop
    if not blocked or _only_waits_for_a_wrong_rank(seen, blocked):
        return None
    if seen.left:
        return None  # the others wait for a rank that left: told there
    difference, suspicion = _first_difference(seen)
    lines = ["deadlock, no rank can continue"]
    lines += [seen.state_line(rank) for rank in seen.ranks] + difference
    where = {rank.number: rank.stuck for rank in blocked}
    rows = {rank.number: rank.calls for rank in seen.ranks}
    reason = hangs.why(where, rows, columns_of(seen), seen.job.source)
    if suspicion in OF_MESSAGES:
        reason = suspicion
    if reason == "tags_differ":
        lines += ["two ends of one message:", *other_tags(seen)]
    if hangs.polls(seen.job.source, rows):
        reason = "polled"
    return Finding(Kind.HANG, lines, reason or suspicion)


def _first_difference(seen: Evidence) -> tuple[list[str], str]:
    """Of the collectives, else of the messages."""
    lines, suspicion = first_difference(seen)
    return (lines, suspicion) if lines else first_message_difference(seen)


def _only_waits_for_a_wrong_rank(seen: Evidence, blocked: list[Rank]) -> bool:
    """Whether the blocked ranks wait for one at which the check ended earlier.

    A rank that is blocked in the learner's own line, and has not reached the
    comparison at which others failed, is the cause; one that got further is a
    consequence. So is one that has called the learner's function once more, however
    few comparisons it had to make until then.
    """
    failed = [rank.report for rank in seen.ranks if rank.mismatch or rank.fault]
    if not failed:
        return False
    earliest = min(_progress(report, report["frames"]) for report in failed)
    return not any(
        rank.stuck.get("line")
        and not _called_once_more(rank.stuck, failed)
        and _progress(rank.stuck, rank.stuck["stack"][::-1]) <= earliest
        for rank in blocked
    )


def _called_once_more(stuck: dict, failed: list[dict]) -> bool:
    """Whether a failed rank has called this function less often.

    Where it has another function to call, all calls count.
    """
    name, own = stuck.get("inside"), stuck.get("entered", {})
    theirs = [report.get("entered", {}) for report in failed]
    if not name:
        return False
    for calls in theirs:
        if name in calls and calls[name] < own[name]:
            return True
        if name not in calls and 0 < sum(calls.values()) < sum(own.values()):
            return True
    return False


def _progress(report: dict, frames: list[dict]) -> tuple[int, int]:
    """How far a rank got in the check: (comparisons passed, line of the check)."""
    lines = [frame["line"] for frame in frames if frame.get("check")]
    return report.get("passed", 0), lines[0] if lines else 0


def left_early(seen: Evidence) -> Finding | None:
    if not seen.left:
        return None
    rank = seen.left[0]
    if rank.status == "exit":
        how, place = f"sys.exit({rank.report['code']})", rank.frame
    elif rank.leaving:
        how, place = rank.leaving["how"], rank.leaving
    else:
        how, place = f"exit status {rank.ended}", {}
    ranks = [rank.number for rank in seen.left]
    lines = [f"{ranks_text(ranks)} left before the check was done, by {how}"]
    lines += seen.at(place)
    lines.append("a rank that reports nothing counts as failed")
    return Finding(Kind.LEFT_EARLY, lines + seen.others(ranks))


def process_still_runs(seen: Evidence) -> Finding | None:
    if not seen.outcome.left_running:
        return None
    command = seen.outcome.left_running[0]
    lines = [
        f"a process started by your code was still running: {command}",
        "wait for every process you start, or your job never ends",
    ]
    return Finding(Kind.LEFT_RUNNING, lines)


def thread_still_runs(seen: Evidence) -> Finding | None:
    for rank in seen.ranks:
        if threads := rank.report.get("threads"):
            lines = [
                f"thread {threads[0]!r} of rank {rank.number} was still running",
                "a program ends only when its threads have: join() them",
            ]
            return Finding(Kind.LEFT_RUNNING, lines)
    return None
