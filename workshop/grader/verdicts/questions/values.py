"""Every rank came to its end: do the calls match, are the values and the way right?"""

from __future__ import annotations

from workshop.grader.verdicts.classics.calls import of_calls
from workshop.grader.verdicts.classics.exceptions import takes_a_sender
from workshop.grader.verdicts.classics.scripts import of_script
from workshop.grader.verdicts.difference import (
    first_difference,
    first_message_difference,
)
from workshop.grader.verdicts.evidence import Evidence, Finding
from workshop.grader.verdicts.verdict import Kind
from workshop.grader.verdicts.wording import ranks_text


def ledgers_disagree(seen: Evidence) -> Finding | None:
    difference, suspicion = first_difference(seen)
    if not difference:
        return None
    head = "the ranks' collectives do not match, and gloo lets it through"
    return Finding(Kind.LEDGER, [head, *difference], suspicion)


def wrong_value(seen: Evidence) -> Finding | None:
    failed = _mismatches(seen, way=False)
    if not failed:
        return None
    lines = _sentences(seen, failed)
    right = [rank.number for rank in seen.ranks if rank.status == "ok"]
    if right and len(seen.ranks) > 1:
        lines.append(f"  {ranks_text(right)}: right")
    if seen.job.scheduler:
        suspicion = of_script(seen.job.source, "\n".join(lines))
        return Finding(Kind.WRONG_VALUE, lines, suspicion)
    ends, of_messages = first_message_difference(seen)
    told = [] if of_messages else _too_soon(seen)
    if told:  # as if it happened to be right
        return Finding(Kind.WRONG_WAY, [*told, *lines], "not_waited")
    past = len(right)
    if any(mismatch["what"] for mismatch in failed.values()):  # a value, no sentence
        past += len(seen.unended)  # these got past it, and wait for those that failed
    suspicion = of_messages or _suspicion_of_values(seen, failed, past)
    if not suspicion and takes_a_sender(seen.job.source, "\n".join(lines)):
        suspicion = "result_of_recv"
    return Finding(Kind.WRONG_VALUE, lines + ends, suspicion)


def never_waited_for(seen: Evidence) -> Finding | None:
    """Right this time: with a slower rank it would not be."""
    told = _too_soon(seen)
    return Finding(Kind.WRONG_WAY, told, "not_waited") if told else None


def _too_soon(seen: Evidence) -> list[str]:
    """Who did not wait for a Work, or used its tensor before."""
    return _used(seen, "changed") or _unwaited(seen) or _used(seen, "read")


def _used(seen: Evidence, how: str) -> list[str]:
    rows = {rank.number: row for rank in seen.ranks for row in rank.used(how)[:1]}
    if not rows:
        return []
    row = next(iter(rows.values()))
    call = f"{row['caller'] or row['op']} at line {row['line']}"
    head = f"{ranks_text(list(rows))} {how} the tensor of {call} before waiting for it"
    return [head, *seen.at({"line": row["did_at"]})]


def _unwaited(seen: Evidence) -> list[str]:
    rows = {rank.number: rank.unwaited[0] for rank in seen.ranks if rank.unwaited}
    if not rows:
        return []
    row = next(iter(rows.values()))
    call = f"{row['caller'] or row['op']} at line {row['line']}"
    head = f"{ranks_text(list(rows))} never waited for the Work of {call}"
    return [head, *seen.at({"line": row["line"]})]


# What a value looks like when it is not the cause, but a consequence.
VAGUE = (
    "",
    "not_communicated",
    "zero",
    "all_slots_equal",
    "other_order",
    "remainder",
    "ranks_differ",
)


def _suspicion_of_values(seen: Evidence, failed: dict[int, dict], right: int) -> str:
    """By the values if they are clear, else by the calls."""
    by_value = _suspicion(failed)
    rows = [row for rank in seen.ranks for row in rank.calls]
    collectives = [row for row in rows if row["op"] not in ("send", "recv", "barrier")]
    if by_value == "returns_none" and not any(row["line"] for row in collectives):
        return ""  # nothing that could have returned None for a result
    some_are_right = by_value == "returns_none" and right
    if by_value not in VAGUE and not some_are_right:
        return by_value
    return of_calls(rows, right) or by_value


def wrong_way(seen: Evidence) -> Finding | None:
    failed = _mismatches(seen, way=True)
    if not failed:
        return None
    return Finding(Kind.WRONG_WAY, _sentences(seen, failed), _suspicion(failed))


def _mismatches(seen: Evidence, way: bool) -> dict[int, dict]:
    """What did not match, by rank."""
    return {
        rank.number: rank.mismatch
        for rank in seen.ranks
        if rank.mismatch and bool(rank.mismatch.get("way")) is way
    }


def _suspicion(failed: dict[int, dict]) -> str:
    keys = [mismatch["suspicion"] for mismatch in failed.values()]
    first = next(filter(None, keys), "")
    if first == "not_communicated" and {*keys} != {first}:
        return ""  # others did receive something
    return first


def _sentences(seen: Evidence, failed: dict[int, dict]) -> list[str]:
    """What is compared, then a line for all ranks that saw the same."""
    what = next(iter(failed.values()))["what"]
    groups: dict[str, list[int]] = {}
    for rank, mismatch in failed.items():
        other = mismatch["what"] if mismatch["what"] != what else ""
        text = f"{other}: {mismatch['problem']}" if other else mismatch["problem"]
        groups.setdefault(text, []).append(rank)
    said = [f"{seen.who(who)}{text}" for text, who in groups.items()]
    head, rows = (what, said) if what else (said[0], said[1:])
    lines = [head, *(f"  {row}" for row in rows)]
    return [part for line in lines for part in line.split("\n")]
