"""In which line of the program each rank waited, from the tracebacks of a time-out."""

from __future__ import annotations

import re

from grader.commands.diagnose.first import EXCEPTION, OF_LAUNCHERS, is_consequence
from grader.commands.diagnose.logs import Line, Log

FRAME = re.compile(r'^\s+File "([^"]+)", line (\d+), in ')
LIBRARY = re.compile(
    r"(?:site|dist)-packages/|/lib/python|^<|(?:^|/)torch/|bin/torchrun"
)
SEND = re.compile(r"\bsend\(")
TIMED_OUT = re.compile(r"Timed out waiting \d+ ?ms for")


def waiting_lines(log: Log) -> dict[int, Line]:
    """Rank -> the line where it waited; {} if any rank failed by an error of its own.

    A rank that timed out closes its connections, so the others may lose a partner
    instead: their lines count, too, if at least one rank timed out.
    """
    frames: dict[int, list[Line]] = {}
    waits: dict[int, Line] = {}
    timed_out = False
    rows = [line for line in log.lines if line.rank is not None]
    for row, line in enumerate(rows):
        rank = line.rank or 0
        if match := FRAME.match(line.text):
            if not LIBRARY.search(match[1]):
                code = next((x for x in rows[row + 1 :] if x.rank == rank), line)
                said = f"{match[1]}:{match[2]} {code.text.strip()}"
                frames.setdefault(rank, []).append(Line(line.place, rank, said))
        elif EXCEPTION.match(line.text) and not OF_LAUNCHERS.search(line.text):
            if not is_consequence(line.text):
                return {}
            timed_out |= bool(TIMED_OUT.search(line.text))
            if frames.get(rank):
                waits.setdefault(rank, frames[rank][-1])
    return waits if timed_out else {}


def differ(waits: dict[int, Line]) -> bool:
    return len({line.text for line in waits.values()}) > 1


def all_send(waits: dict[int, Line]) -> bool:
    return len(waits) > 1 and all(SEND.search(line.text) for line in waits.values())
