"""The one world size in which the short `make test` runs a check that has several.

Three ranks, if it has a choice: with two, many a mistake cancels out. FULL=1 has all.
"""

from __future__ import annotations

from collections.abc import Iterable

USUAL = 3


def usual(sizes: Iterable[int]) -> int:
    """The size nearest to three, and of two equally near ones the larger."""
    return min(sizes, key=lambda size: (abs(size - USUAL), -size))
