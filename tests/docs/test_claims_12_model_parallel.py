"""What docs/lessons/12_model_parallel.rst says about PyTorch, tried out.

What happens inside ranks is in ranks_12_model_parallel.py; the grader's engine runs it.
"""

from pathlib import Path

import pytest

from grader.checks import checks_in
from grader.engine import Engine
from grader.verdict import Kind

HERE = Path(__file__).resolve().parent
CLAIMS = checks_in(HERE / "ranks_12_model_parallel.py")


@pytest.fixture(scope="module")
def engine():
    with Engine() as engine:
        engine.warm()
        yield engine


@pytest.mark.parametrize(
    "claim", CLAIMS, ids=lambda c: f"{c.function[5:]}-{c.world_size}-seed-{c.seed}"
)
def test_claim(claim, engine, tmp_path):
    nobody = tmp_path / "nobody.py"
    nobody.write_text("")
    verdict = engine.run_check(claim, "", nobody)
    assert verdict.kind is Kind.RIGHT, verdict.message
