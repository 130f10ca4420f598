"""What an entry of the tables is, and how a table is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

COLLECTIVES = "docs/lessons/03_collectives/1_what_they_do.rst"
DEADLOCKS = "docs/lessons/03_collectives/3_deadlocks.rst"


@dataclass(frozen=True)
class Classic:
    """A classic mistake; each was run as a right and as a wrong program first.

    Attributes:
        text: what to tell the learner.
        page: the page that explains it, or "".
        seen: whether what its table is asked about shows this mistake; a string is
            what is striking. None: the code that finds the mistake names it by its key.
        gallery: the failure of lesson 19 that shows this mistake alone, or "".
    """

    text: str
    page: str = ""
    seen: Callable[..., Any] | None = None
    gallery: str = ""


Table = dict[str, Classic]  # by key, in the order in which they are tried


def first_seen(table: Table, *facts: Any) -> tuple[str, Any]:
    """(key, what ``seen`` returned) of the first mistake that is seen, or ("", "")."""
    for key, classic in table.items():
        striking = classic.seen(*facts) if classic.seen else None
        if striking:
            return key, striking
    return "", ""
