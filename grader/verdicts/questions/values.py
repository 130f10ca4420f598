"""Every rank came to its end: do the calls match, are the values and the way right?"""

from __future__ import annotations

from grader.verdicts.classics.calls import of_calls
from grader.verdicts.difference import first_difference
from grader.verdicts.evidence import Evidence, Finding
from grader.verdicts.verdict import Kind
from grader.verdicts.wording import ranks_text


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
    rows = [row for rank in seen.ranks for row in rank.calls]
    suspicion = _suspicion(failed) or of_calls(rows, len(right))
    return Finding(Kind.WRONG_VALUE, lines, suspicion)


def wrong_way(seen: Evidence) -> Finding | None:
    failed = _mismatches(seen, way=True)
    if not failed:
        return None
    return Finding(Kind.WRONG_WAY, _sentences(seen, failed), _suspicion(failed))


def _mismatches(seen: Evidence, way: bool) -> dict[int, dict]:
    """What did not match, by rank."""
    return {
        rank.number: mismatch
        for rank in seen.ranks
        if (mismatch := rank.mismatch) and bool(mismatch.get("way")) is way
    }


def _suspicion(failed: dict[int, dict]) -> str:
    return next((m["suspicion"] for m in failed.values() if m["suspicion"]), "")


def _sentences(seen: Evidence, failed: dict[int, dict]) -> list[str]:
    """What is compared, then a line for all ranks that saw the same."""
    what = next(iter(failed.values()))["what"]
    if not what:
        problem = next(iter(failed.values()))["problem"]
        return [f"{seen.who(list(failed))}{problem}"]
    groups: dict[str, list[int]] = {}
    for rank, mismatch in failed.items():
        other = mismatch["what"] if mismatch["what"] != what else ""
        text = f"{other}: {mismatch['problem']}" if other else mismatch["problem"]
        groups.setdefault(text, []).append(rank)
    return [what, *(f"  {seen.who(who)}{text}" for text, who in groups.items())]
