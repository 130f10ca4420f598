"""How MPI's launchers say that each rank ended: by itself, or because of another one.

Intel MPI and MPICH (Hydra) write a block for each rank, PALS one line. When a rank has
ended they end the others, by SIGTERM (15) or SIGKILL (9).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from workshop.diagnose.lines import Line

BLOCK = re.compile(r"^=\s+RANK (\d+) PID \d+ RUNNING AT \S+")
OF_BLOCK = re.compile(r"^=\s+(?:(EXIT (?:STATUS|CODE))|KILLED BY SIGNAL): (\d+)")
OF_PALS = re.compile(
    r"^(?:[\w.-]+: )?rank (\d+) (?:(exited with code)|died from signal) (\d+)\s*$"
)
KILL, TERM = -9, -15
OF_A_SHELL = 128  # which adds the number of a signal to this


@dataclass(frozen=True)
class Ending:
    """How one rank ended; ``code`` is negative for a signal."""

    rank: int
    code: int
    line: Line


def read_endings(lines: Iterable[Line]) -> list[Ending]:
    """What launchers say, in the order of the log."""
    found: list[Ending] = []
    rank: int | None = None
    for line in lines:
        if block := BLOCK.match(line.text):
            rank = int(block[1])
            continue
        told = OF_PALS.match(line.text)
        if told:
            found.append(Ending(int(told[1]), code_of(told[2], told[3]), line))
        how = OF_BLOCK.match(line.text)
        if how and rank is not None:
            found.append(Ending(rank, code_of(how[1], how[2]), line))
            rank = None
    return found


def code_of(exited: str | None, number: str) -> int:
    if not exited:
        return -int(number)
    code = int(number)
    return OF_A_SHELL - code if code > OF_A_SHELL else code


def only_ended(endings: list[Ending], failed: bool) -> list[Ending]:
    """Those whose rank the launcher ended, as another one had failed.

    ``failed``: a rank raised an error of its own.
    """
    others = {each.rank for each in endings if each.code not in (0, KILL, TERM)}
    return [
        each
        for each in endings
        if each.code == TERM or (each.code == KILL and (failed or others))
    ]


def killed_together(endings: list[Ending]) -> set[Line]:
    """Lines of several ranks that SIGKILL ended, some of them by the launcher."""
    killed = [each for each in endings if each.code == KILL]
    ranks = {each.rank for each in killed}
    return {each.line for each in killed} if len(ranks) > 1 else set()
