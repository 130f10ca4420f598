"""Fixtures: one warm engine, and a way to grade a few lines of code in ranks."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from grader.checks import checks_in
from grader.engine import Engine

CALLS_ANSWER = '''
import pytest, torch
import torch.distributed as dist
from grader import expect

@pytest.mark.ranks({ranks})
def test_answer(exercise, rank, world_size, seed, ledger, shared_dir):
    """The answer is the sum of the ranks' numbers."""
    mine = torch.tensor([rank + 1.0, 10.0 * rank, 3.0], dtype=torch.float64)
    expected = mine.clone()
    dist.all_reduce(expected)
    expect.close(exercise.answer(mine.clone()), expected, "the sum", local=mine)
'''


@pytest.fixture(scope="session")
def engine():
    with Engine() as engine:
        engine.warm()
        yield engine


@pytest.fixture
def run(engine, tmp_path):
    """``run(code, check=..., ranks="3")`` -> the verdict on ``code``."""

    def run(code: str, check: str = CALLS_ANSWER, ranks: str = "3", **changes):
        exercise = tmp_path / "exercise.py"
        exercise.write_text(textwrap.dedent(code))
        checks = tmp_path / "test_exercise.py"
        checks.write_text(textwrap.dedent(check).replace("{ranks}", ranks))
        first = checks_in(checks)[0]
        return engine.run_check(first, exercise.read_text(), exercise)

    return run


@pytest.fixture
def workshop_root() -> Path:
    return Path(__file__).resolve().parents[2]
