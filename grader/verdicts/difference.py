"""Where the collectives of a group first differ between its ranks."""

from __future__ import annotations

from grader.verdicts.classics.calls import agree, of_difference
from grader.verdicts.evidence import Evidence
from grader.verdicts.wording import call_text, ranks_text

Columns = dict[int, list[dict]]  # the collectives of each rank of a group


def columns_of(seen: Evidence) -> dict[tuple, Columns]:
    """group -> rank -> the rank's collectives in that group."""
    groups: dict[tuple, Columns] = {}
    for rank in seen.ranks:
        for row in rank.calls:
            if row["op"] not in ("send", "recv") and row["group"]:
                group = tuple(row["group"])
                columns = groups.setdefault(group, {r: [] for r in group})
                columns.setdefault(rank.number, []).append(row)
    return groups


def first_difference(seen: Evidence) -> tuple[list[str], str]:
    """(lines, key of the classic mistake); ([], "") if the ledgers agree.

    Ranks that still wait, or ended early, have called less, which is told by
    their own lines: then only calls that all of them made are compared,
    unless nothing hangs.
    """
    for group, columns in columns_of(seen).items():
        index = _first_index(seen, columns)
        if index is not None:
            here = _calls_at(columns, index)
            present = [row for row in here.values() if row]
            return _lines(seen, group, columns, index), of_difference(present)
    return [], ""


def _calls_at(columns: Columns, index: int) -> dict[int, dict | None]:
    return {
        rank: rows[index] if index < len(rows) else None
        for rank, rows in columns.items()
    }


def _first_index(seen: Evidence, columns: Columns) -> int | None:
    whole = seen.why == "done"
    for index in range(max(map(len, columns.values()))):
        here = _calls_at(columns, index)
        present = [row for row in here.values() if row]
        complete = len(present) == len(here)
        if not complete and whole and not seen.all_ended_well:
            return None
        if not agree(present) or not (complete or not whole):
            return index
        if not complete:
            return None
    return None


def _lines(seen: Evidence, group: tuple, columns: Columns, index: int) -> list[str]:
    here = _calls_at(columns, index)
    everybody = len(group) == seen.job["world_size"]
    among = "" if everybody else f" of the group {list(group)}"
    number = 1 + _calls_before(columns, index)
    told: dict[str, list[int]] = {}
    for rank, row in here.items():
        told.setdefault(call_text(row) if row else "no such call", []).append(rank)
    lines = [f"first difference: collective no. {number}{among}"]
    return lines + [f"  {ranks_text(who)}: {text}" for text, who in told.items()]


def _calls_before(columns: Columns, index: int) -> int:
    """How many collectives the learner's own lines made before this one."""
    here = _calls_at(columns, index)
    before = [row for rows in columns.values() for row in rows[:index]]
    mine = any(row and row["line"] for row in here.values())
    if not mine or not before:
        return index
    rank = next(rank for rank, row in here.items() if row)
    return sum(row["line"] is not None for row in columns[rank][:index])
