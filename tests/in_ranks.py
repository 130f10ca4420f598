"""Tests of what happens inside ranks: functions of a file, run by the grader's engine.

    @every_check_in(HERE / "ranks_13_pipeline.py")
    def test_in_ranks(check, verdict_of):
        assert_right(verdict_of(check))

Fresh ranks for every function cost a tenth of a second, a launcher several seconds.
``verdict_of`` is a fixture of ``tests/conftest.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.checks import checks_in
from grader.verdicts.verdict import Kind, Verdict


def every_check_in(path: Path) -> pytest.MarkDecorator:
    """Parametrise a test by ``check``: every function at every world size."""
    return pytest.mark.parametrize(
        "check",
        checks_in(path, seeds=(1,)),
        ids=lambda c: f"{c.function[5:]}-{c.world_size}",
    )


def assert_right(verdict: Verdict) -> None:
    """Fail with what the engine saw, unless every rank came through."""
    assert verdict.kind is Kind.RIGHT, verdict.message
