"""Ranks that may have failed first, and how the report names them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class First:
    """The ranks that may have failed first, and how that was found out."""

    ranks: tuple[int, ...]
    reason: str
    sure: bool = True


def listed(ranks: tuple[int, ...] | list[int]) -> str:
    """For a reader: ``rank 2``, ``ranks 0, 1 and 3``."""
    names = [str(rank) for rank in ranks]
    if len(names) > 8:
        names = [*names[:6], "more"]
    head = ", ".join(names[:-1])
    return f"ranks {head} and {names[-1]}" if head else f"rank {names[0]}"
