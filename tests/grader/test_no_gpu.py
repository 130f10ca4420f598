"""What checks on a machine with GPUs: its ranks don't see them."""

from tests.grader.support import grade_code
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind
from workshop.system.environment import NO_GPU

SEEN = '''
import os

import pytest

@pytest.mark.ranks({ranks})
def test_answer(exercise, rank, world_size, seed, ledger, shared_dir):
    """No rank sees a GPU."""
    assert exercise.answer(os.environ) == ["", "", ""]
'''
ANSWER = f"""
def answer(variables):
    return [variables[name] for name in {list(NO_GPU)}]
"""


def test_ranks_of_a_check_see_no_gpu(tmp_path, monkeypatch):
    """`fully_shard` would take it, and three ranks would want three (seen on one)."""
    for name in NO_GPU:
        monkeypatch.setenv(name, "0")
    with Engine() as engine:
        verdict = grade_code(engine, tmp_path, ANSWER, check=SEEN)
    assert verdict.kind is Kind.RIGHT, verdict
