"""What several tests of the grader share: grading a few lines of code in ranks."""

from __future__ import annotations

import textwrap
from pathlib import Path

from workshop.grader.checks import checks_in
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Verdict

SUM_OF_RANKS = '''
import pytest, torch
import torch.distributed as dist
from workshop.grader import expect

@pytest.mark.ranks({ranks})
def test_answer(exercise, rank, world_size, seed, ledger, shared_dir):
    """The answer is the sum of the ranks' numbers."""
    mine = torch.tensor([rank + 1.0, 10.0 * rank, 3.0], dtype=torch.float64)
    expected = mine.clone()
    dist.all_reduce(expected)
    expect.close(exercise.answer(mine.clone()), expected, "the sum", local=mine)
'''
RIGHT = """
import torch.distributed as dist

def answer(t):
    dist.all_reduce(t)
    return t
"""
SUM = "dist.all_reduce(t)\n"
HEAD = """
import time
import torch
import torch.distributed as dist

def answer(t):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
"""


def body(text: str) -> str:
    """A file whose ``answer(t)`` is this text, with names of ranks at hand."""
    return HEAD + "".join(f"    {line}\n" for line in text.strip().splitlines())


def grade_code(
    engine: Engine, folder: Path, code: str, check: str = SUM_OF_RANKS, ranks: int = 3
) -> Verdict:
    """Write ``code`` and ``check`` into ``folder`` and run the first check."""
    checks = folder / "test_exercise.py"
    checks.write_text(textwrap.dedent(check).replace("{ranks}", str(ranks)))
    exercise = folder / "exercise.py"
    exercise.write_text(textwrap.dedent(code))
    return engine.run_check(checks_in(checks)[0], exercise.read_text(), exercise)
