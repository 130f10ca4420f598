"""Causes of a run that reports no error: what its numbers show is wrong.

Each rule returns the lines that show it. It is sure only if nothing healthy prints
them; otherwise the report asks the question that tells.
"""

from __future__ import annotations

from workshop.diagnose.first import is_consequence, is_own_error, look
from workshop.diagnose.kinds import NOISE
from workshop.diagnose.logs import Log
from workshop.diagnose.numbers import Shown, read_numbers
from workshop.diagnose.samples import SAMPLES
from workshop.diagnose.slow import SLOW
from workshop.diagnose.state import STATE

RULES = SAMPLES | STATE | SLOW  # in the order in which they are told


def numbers_show(log: Log) -> dict[str, Shown]:
    """Name of a cause -> what shows it, likeliest first; {} where a rank failed."""
    lines = [row for row in log.lines if row.kind != NOISE]
    if any(is_own_error(row) or is_consequence(row.text) for row in lines):
        return {}
    said, ranks = read_numbers(log), len(look(log).ranks)
    found = {name: rule(said, ranks) for name, rule in RULES.items()}
    return {name: shown for name, shown in found.items() if shown}
