"""Where the collectives of a group first differ between its ranks."""

from __future__ import annotations

from workshop.grader.verdicts.classics.calls import (
    agree,
    of_difference,
    only_the_order_differs,
    with_the_checks_own,
)
from workshop.grader.verdicts.evidence import Evidence, Rank
from workshop.grader.verdicts.wording import call_text, ranks_text

OF_MESSAGES = ("message_differs", "message_of_another")  # keys of classic mistakes
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

    Ranks that still wait, or ended early, have called less, as their own
    lines say: then only calls that all of them made are compared,
    unless nothing hangs.
    """
    for group, columns in columns_of(seen).items():
        index = _first_index(seen, columns)
        if index is not None:
            here = _calls_at(columns, index)
            present = [row for row in here.values() if row]
            key = of_difference(present)
            if only_the_order_differs(list(columns.values())):
                key = "another_order"
            return _lines(seen, group, columns, index), key
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
    everybody = len(group) == seen.job.world_size
    among = "" if everybody else f" of the group {list(group)}"
    number = 1 + _calls_before(columns, index)
    mixed = with_the_checks_own([row for row in here.values() if row])
    told: dict[str, list[int]] = {}
    for rank, row in here.items():
        text = call_text(row) if row else "no such call"
        if row and mixed and row["line"] is None:
            text = f"{_how_it_left(seen.ranks[rank], row)} before such a call"
        told.setdefault(text, []).append(rank)
    lines = [f"first difference: collective no. {number}{among}"]
    return lines + [f"  {ranks_text(who)}: {text}" for text, who in told.items()]


def _how_it_left(rank: Rank, row: dict) -> str:
    """How a rank left the learner's code before a call of the check, its ``row``."""
    return (row is rank.calls[-1] and rank.ended_by) or "returned from your code"


def _calls_before(columns: Columns, index: int) -> int:
    """How many collectives the learner's own lines made before this one."""
    here = _calls_at(columns, index)
    before = [row for rows in columns.values() for row in rows[:index]]
    own = any(row and row["line"] for row in here.values())
    if not own or not before:
        return index
    rank = next(rank for rank, row in here.items() if row)
    return sum(row["line"] is not None for row in columns[rank][:index])


def first_message_difference(seen: Evidence) -> tuple[list[str], str]:
    """The same for sends and receives: a message whose two ends do not fit.

    Of other shapes with as many elements it does not matter, so only ask when
    something is wrong. Other numbers of elements may be those of another partner.
    """
    sent, received = _messages(seen)
    for key, rows in sent.items():
        for number, (one, other) in enumerate(
            zip(rows, received.get(key, []), strict=False), start=1
        ):
            if (one["dtypes"], one["numel"]) != (other["dtypes"], other["numel"]):
                source, target, _ = key
                head = f"message no. {number} from rank {source} to rank {target}"
                ends = [
                    f"  rank {source}: {call_text(one)}",
                    f"  rank {target}: {call_text(other)}",
                ]
                alike = one["numel"] == other["numel"]
                key = "message_differs" if alike else "message_of_another"
                return [f"first difference: {head}", *ends], key
    return [], ""


def other_tags(seen: Evidence) -> list[str]:
    """The two ends of a message that agree in all but the tag."""
    sent, received = _messages(seen)
    for source, target, tag in sent:
        for other in received:
            if other[:2] == (source, target) and other[2] != tag:
                ends = (source, sent[source, target, tag]), (target, received[other])
                return [f"  rank {rank}: {call_text(rows[0])}" for rank, rows in ends]
    return []


Ends = dict[tuple[int, int, int], list[dict]]  # calls by (source, target, tag)


def _messages(seen: Evidence) -> tuple[Ends, Ends]:
    """All sends and all receives; none of a rank that takes what comes."""
    sent: Ends = {}
    received: Ends = {}
    for rank in seen.ranks:
        for row in rank.calls:
            peer, tag = row["peer"], row["tag"] or 0
            if row["op"] == "send":
                sent.setdefault((rank.number, peer, tag), []).append(row)
            elif row["op"] == "recv" and peer is not None:
                received.setdefault((peer, rank.number, tag), []).append(row)
    return sent, received
