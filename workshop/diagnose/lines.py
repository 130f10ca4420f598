"""One line of a log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One line, without the marks that say who wrote it."""

    place: str  # file:number
    rank: int | None
    text: str
    level: str = ""  # of the logger that wrote it
    kind: str = ""  # see kinds.py
    process: int | None = None
    address: str = ""  # of another node than the one where Ray's driver runs
