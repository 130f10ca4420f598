"""Mistakes behind a deadlock: why ranks wait for each other.

Works on plain data: the rows of the ranks' ledgers, and
what each blocked rank said of where it is.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass

from workshop.grader.verdicts.classics.calls import (
    agree,
    of_difference,
    with_the_checks_own,
)
from workshop.grader.verdicts.classics.classic import (
    COLLECTIVES,
    DEADLOCKS,
    Classic,
    Table,
    first_seen,
)

POINT_TO_POINT = {"send", "recv"}
_READS = re.compile(r"\bstore\.(get|multi_get|wait)\b")

Rows = dict[int, list[dict]]  # a rank's calls, by rank


def polls(source: str, rows: Rows) -> bool:
    """Whether a program asks for the end of a send or receive and never waits."""
    calls = [row for of_rank in rows.values() for row in of_rank if row["line"]]
    return "is_completed(" in source and any(r["op"] in POINT_TO_POINT for r in calls)


def why(
    blocked: dict[int, dict],
    rows: Rows,
    columns: dict[tuple, Rows],
    source: str = "",
) -> str:
    """The key of the mistake, or "".

    Args:
        blocked: what each blocked rank says of where it is.
        rows: all calls of every rank.
        columns: the collectives only, by group.
        source: the text of the learner's file.
    """
    texts = [stuck.get("text") or "" for stuck in blocked.values()]
    if key := first_seen(IN_GROUPS, texts)[0]:
        return key
    last = {
        rank: blocked[rank].get("waits_for") or rows[rank][-1]
        for rank in blocked
        if rows[rank]
    }
    own = {rank: row for rank, row in last.items() if blocked[rank].get("line")}
    waiting = [rank for rank, row in own.items() if row["op"] in POINT_TO_POINT]
    if waiting:
        texts = [blocked[rank].get("text") or "" for rank in waiting]
        partners = {rank: (own[rank]["op"], own[rank]["peer"]) for rank in waiting}
        again = any(_waits_again(blocked[rank], rows[rank]) for rank in waiting)
        messages = _messages(texts, rows, partners, again)
        return first_seen(IN_MESSAGES, messages)[0]
    by_name = [rank for rank, row in last.items() if row["caller"]]  # not by DDP
    looped = any(_loops(blocked[rank], source) for rank in by_name)
    for of_group in columns.values():
        if found := _why_collectives(of_group, looped):
            return found
    return ""


def _waits_again(stuck: dict, calls: list[dict]) -> bool:
    """Whether a rank is in the `wait()` of a Work that was waited for before."""
    begun_here = calls[-1]["line"] == stuck["line"]
    asks = "wait(" in (stuck.get("text") or "")
    return asks and not begun_here and not stuck.get("waits_for")


LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BRANCHES = (ast.If, ast.IfExp)


def _loops(stuck: dict, source: str) -> bool:
    """Whether a loop, and no `if`, decides how many times a rank calls it."""
    lines = {frame["line"] for frame in stuck.get("stack", []) if frame.get("own")}
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return False
    around = [
        node
        for node in nodes
        if isinstance(node, (*LOOPS, *BRANCHES))
        and any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)
    ]
    return bool(around) and not any(isinstance(node, BRANCHES) for node in around)


# Sends and receives

Partners = dict[int, tuple[str, int | None]]  # (send or recv, of whom), by rank
NOBODY = ("", None)


@dataclass(frozen=True)
class Messages:
    """Sends and receives by (source, target, tag), what waits, and for whom.

    ``again`` is whether some rank waits for what it has waited for before.
    """

    waiting: list[str]
    sent: Counter
    received: Counter
    partners: Partners
    again: bool

    @property
    def match(self) -> bool:
        return self.sent == self.received

    @property
    def both_ways(self) -> bool:
        pairs = {(a, b) for a, b, _ in self.sent}
        return any((b, a) in pairs for a, b in pairs)

    @property
    def circle(self) -> bool:
        """Whether ranks wait for each other, and nothing else is under way."""
        sent, received = self.sent - self.received, self.received - self.sent
        ends = [(a, ("send", b)) for a, b, _ in sent]
        ends += [(b, ("recv", a)) for a, b, _ in received]
        if any(self.partners.get(rank) != call for rank, call in ends):
            return False  # a message that is wanted elsewhere: a wrong neighbor
        return any(rank in self._waited_for_by(rank) for rank in self.partners)

    def _waited_for_by(self, rank: int) -> set[int]:
        found: set[int] = set()
        partner = self.partners.get(rank, NOBODY)[1]
        while partner is not None and partner not in found:
            found.add(partner)
            partner = self.partners.get(partner, NOBODY)[1]
        return found

    @property
    def match_without_tags(self) -> bool:
        """Or all that is waited for was sent, each with another tag."""
        if _without_tags(self.sent) == _without_tags(self.received):
            return True
        wanted = _without_tags(self.received - self.sent)
        return bool(wanted) and wanted <= _without_tags(self.sent - self.received)


def _messages(
    waiting: list[str], rows: Rows, partners: Partners, again: bool = False
) -> Messages:
    messages = Messages(waiting, Counter(), Counter(), partners, again)
    for rank, calls in rows.items():
        for row in calls:
            if row["op"] == "send":
                messages.sent[rank, row["peer"], row["tag"] or 0] += 1
            elif row["op"] == "recv":
                messages.received[row["peer"], rank, row["tag"] or 0] += 1
    return messages


def _without_tags(messages: Counter) -> Counter:
    total: Counter = Counter()
    for (source, target, _), count in messages.items():
        total[source, target] += count
    return total


def _all_send(m: Messages) -> bool:
    if m.match:
        return m.both_ways
    return not m.received and len(m.waiting) > 1


# seen(messages): at least one rank waits in a send or a receive
IN_MESSAGES: Table = {
    "waited_twice": Classic(
        "`wait()` on the same send or receive twice: with gloo the second one "
        "never returns",
        DEADLOCKS,
        lambda m: m.again,
    ),
    "tags_differ": Classic(
        "sender and receiver use different tags, so the message never matches",
        DEADLOCKS,
        lambda m: not m.match and m.match_without_tags,
    ),
    "all_send": Classic(
        "every rank sends first and none receives: `send` blocks until its "
        "partner receives, even for a few bytes",
        DEADLOCKS,
        _all_send,
        "send_send",
    ),
    "all_receive": Classic(
        "every rank receives first, and none has sent yet",
        DEADLOCKS,
        lambda m: not m.match and not m.sent and len(m.waiting) > 1,
    ),
    "circle_of_receives": Classic(
        "each of these ranks waits in a receive, for a rank that is itself waiting in "
        "one: is each partner right, and no message left out or one too many? If so, "
        "change their order on one rank: of two partners, one must send first",
        DEADLOCKS,
        lambda m: m.circle and all(op == "recv" for op, _ in m.partners.values()),
    ),
    "circle": Classic(
        "each of these ranks waits for a rank that is itself waiting in a send or a "
        "receive: is each partner right, and no message left out or one too many? If "
        "so, change their order on one rank. Or start all transfers with `isend` and "
        "`irecv` before you wait for any, where you may use these",
        DEADLOCKS,
        lambda m: m.circle,
        "send_send",
    ),
    "partner_missing": Classic(
        "a send or receive without a matching call: the wrong neighbor, one message "
        "too many, or one too few",
        DEADLOCKS,
        lambda m: True,
    ),
}


# Collectives


def _why_collectives(rows: Rows, looped: bool) -> str:
    """The mistake in one group: at the first call that does not match."""
    shortest = min(map(len, rows.values()))
    longest = max(map(len, rows.values()))
    for index in range(shortest):
        present = [calls[index] for calls in rows.values()]
        if with_the_checks_own(present):
            return _of_those_ahead(rows, index, looped)
        if not agree(present):
            return of_difference(present)
    if longest == shortest:
        return ""
    return first_seen(IN_COUNTS, rows, longest, looped)[0]


def _of_those_ahead(rows: Rows, index: int, looped: bool) -> str:
    """The mistake if the others have left the learner's code before call ``index``."""
    ahead = {
        rank: calls[: index + (calls[index]["line"] is not None)]
        for rank, calls in rows.items()
    }
    return first_seen(IN_COUNTS, ahead, index + 1, looped)[0]


def _was_called_before(rows: Rows, longest: int) -> bool:
    ahead = [calls for calls in rows.values() if len(calls) == longest]
    lines = {calls[-1]["line"] for calls in ahead} - {None}
    before = {row["line"] for calls in rows.values() for row in calls[: longest - 1]}
    return bool(lines & before)


# seen(rows, longest, looped): some ranks of a group have called more, ``longest``
# times; ``looped``: from inside a loop
IN_COUNTS: Table = {
    "unequal_iterations": Classic(
        "some ranks call it more often than others, for instance because their "
        "loops have different lengths, or because an `if` skips it",
        DEADLOCKS,
        lambda rows, longest, looped: looped or _was_called_before(rows, longest),
        "unequal_batches",
    ),
    "not_everybody": Classic(
        "a collective that only some ranks reach, for instance inside an `if` that is "
        "false on the others, as `if rank == 0:` is",
        DEADLOCKS,
        lambda rows, longest, looped: True,
        "only_rank_0_reduces",
    ),
}

# seen(texts): the lines at which ranks wait
IN_GROUPS: Table = {
    "new_group": Classic(
        "`new_group` is a collective of all ranks, members or not: each calls it for "
        "the same groups, in the same order",
        COLLECTIVES,
        lambda texts: any("new_group(" in text for text in texts),
    ),
    "not_all_joined": Classic(
        "`init_process_group` returns once ranks 0 to `world_size - 1` have all called "
        "it: does each pass another `rank`, and are there that many processes?",
        seen=lambda texts: any("init_process_group(" in text for text in texts),
        gallery="world_size_typed_in",
    ),
    "no_such_key": Classic(
        "`store.get` and `store.wait` block until that very key has been written: does "
        "some rank pass it to `store.set`, before it reads the keys of others?",
        seen=lambda texts: any(_READS.search(text) for text in texts),
    ),
}
