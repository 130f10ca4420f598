"""torchrun's summary of the ranks that failed, with the tracebacks that it quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from workshop.diagnose.lines import Line

OF_RANK = re.compile(r"^\s+rank\s*: (\d+) \(local_rank: \d+\)")
BEGINS = re.compile(r"^\s+traceback\s*: (Traceback \(most recent call last\):.*)")
ENDS = re.compile(r"^(?:[-=]{20,}|\[\d+\]:)")
INDENT = "  "  # of every line that is quoted


def with_quoted(lines: list[Line]) -> Iterator[Line]:
    """The same lines; what ``@record`` kept of a rank is that rank's own traceback."""
    rank: int | None = None
    quoted = False
    for line in lines:
        told = OF_RANK.match(line.text)
        begins = BEGINS.match(line.text)
        if told:
            rank = int(told[1])
        elif begins:
            quoted = True
            line = replace(line, rank=rank, text=begins[1])
        elif ENDS.match(line.text):
            quoted = False
        elif quoted:
            line = replace(line, rank=rank, text=line.text.removeprefix(INDENT))
        yield line
