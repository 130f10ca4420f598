"""Why ranks wait for each other for ever: the classic mistake behind a deadlock.

Works on plain data: the rows of the ranks' ledgers (:mod:`grader.engine.ledger`), and
what each blocked rank said of where it is.
"""

from __future__ import annotations

from collections import Counter

# What must agree between the ranks of a group, per collective. The others may
# differ in shape: lists exist on the root only, splits may be uneven.
SAME_SHAPES = {
    "all_reduce",
    "all_reduce_coalesced",
    "broadcast",
    "reduce",
    "all_gather",
    "all_gather_single",
    "gather",
    "reduce_scatter",
    "reduce_scatter_single",
}
MESSAGES = {"send", "recv"}

Rows = dict[int, list[dict]]  # a rank's calls, by rank


def why(blocked: dict[int, dict], rows: Rows, columns: dict[tuple, Rows]) -> str:
    """The key of the suspicion in :mod:`grader.verdicts.suspicion`, or "".

    Args:
        blocked: what each blocked rank says of where it is.
        rows: all calls of every rank.
        columns: the collectives only, by group.
    """
    last = {rank: rows[rank][-1] for rank in blocked if rows[rank]}
    mine = {rank: row for rank, row in last.items() if blocked[rank].get("line")}
    messages = {rank: row for rank, row in mine.items() if row["op"] in MESSAGES}
    if messages:
        return _why_messages(messages, blocked, rows)
    for of_group in columns.values():
        if found := _why_collectives(of_group):
            return found
    return ""


def _why_messages(waiting: dict[int, dict], blocked: dict, rows: Rows) -> str:
    sent: Counter = Counter()
    received: Counter = Counter()
    for rank, calls in rows.items():
        for row in calls:
            if row["op"] == "send":
                sent[rank, row["peer"], row["tag"] or 0] += 1
            elif row["op"] == "recv":
                received[row["peer"], rank, row["tag"] or 0] += 1
    if sent == received:
        again = all("wait(" in (blocked[rank].get("text") or "") for rank in waiting)
        both_ways = {(a, b) for a, b, _ in sent} & {(b, a) for a, b, _ in sent}
        if again:
            return "waited_twice"
        return "all_send" if both_ways else "partner_missing"
    if _without_tags(sent) == _without_tags(received):
        return "tags_differ"
    if not received and len(waiting) > 1:
        return "all_send"
    if not sent:
        return "all_receive"
    return "partner_missing"


def _without_tags(messages: Counter) -> Counter:
    total: Counter = Counter()
    for (source, target, _), count in messages.items():
        total[source, target] += count
    return total


def _why_collectives(rows: Rows) -> str:
    """The suspicion for one group: the first call that does not match."""
    shortest = min(map(len, rows.values()))
    longest = max(map(len, rows.values()))
    for index in range(shortest):
        present = [calls[index] for calls in rows.values()]
        if not agree(present):
            return kind_of_difference(present)
    if shortest == longest:
        return ""
    ahead = [calls for calls in rows.values() if len(calls) == longest]
    lines = {calls[-1]["line"] for calls in ahead} - {None}
    before = {row["line"] for calls in rows.values() for row in calls[: longest - 1]}
    return "unequal_iterations" if lines & before else "not_everybody"


def agree(rows: list[dict]) -> bool:
    """Whether calls of several ranks belong together."""
    return len({_signature(row) for row in rows}) <= 1


def _signature(row: dict) -> str:
    parts = [row["op"], str(row["reduce_op"]), str(row["root"])]
    if row["op"] in SAME_SHAPES:
        parts += [str(row["dtypes"]), str(row["shapes"])]
    return " ".join(parts)


def kind_of_difference(rows: list[dict]) -> str:
    """The suspicion for calls that do not belong together."""
    if len({row["op"] for row in rows}) > 1:
        return "another_order"
    if len({row["root"] for row in rows}) > 1:
        return "own_root"
    if len({str(row["dtypes"]) for row in rows}) > 1:
        return "dtype_differs"
    if len({str(row["shapes"]) for row in rows}) > 1:
        return "shape_differs"
    if len({row["reduce_op"] for row in rows}) > 1:
        return "reduce_op_differs"
    return ""
