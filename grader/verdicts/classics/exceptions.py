"""Mistakes that an exception of the learner's code gives away."""

from __future__ import annotations

from grader.verdicts.classics.classic import COLLECTIVES, Classic, Table, first_seen

# seen(kind, message): of the exception
IN_EXCEPTIONS: Table = {
    "keyboard": Classic(
        "a rank has no keyboard: read no input in a distributed program",
        seen=lambda kind, text: kind == "EOFError" or "reading from stdin" in text,
    ),
    "group_rank": Classic(
        "a rank within the group was given where the global rank is meant, or the "
        "reverse (C23)",
        COLLECTIVES,
        lambda kind, text: "is not part of group" in text,
    ),
    "init_twice": Classic(
        "the process group exists already: call `init_process_group` once (E02)",
        "docs/lessons/02_ranks.rst",
        lambda kind, text: "default process group twice" in text,
    ),
    "gather_list": Classic(
        "only the root gives a list to scatter and gather (X02)",
        COLLECTIVES,
        lambda kind, text: "gather_list" in text or "scatter_list" in text,
    ),
    "none_result": Classic(
        "collectives change their tensor in place and return None (C05)",
        COLLECTIVES,
        lambda kind, text: (
            "'NoneType' object" in text
            or ("NoneType" in text and "unsupported operand" in text)
        ),
    ),
}


def of_exception(kind: str, message: str) -> str:
    """The key of the mistake for an exception of the learner's code, or ""."""
    return first_seen(IN_EXCEPTIONS, kind, message)[0]
