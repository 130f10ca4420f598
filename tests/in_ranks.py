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

from tests.world_sizes import usual
from workshop.grader.checks import checks_in
from workshop.grader.verdicts.verdict import Kind, Verdict


def every_check_in(path: Path) -> pytest.MarkDecorator:
    """Parametrise a test by ``check``: every function at every world size.

    The short `make test` has each function once (tests/world_sizes.py).
    """
    checks = checks_in(path, seeds=(1,))
    sizes: dict[str, list[int]] = {}
    for check in checks:
        sizes.setdefault(check.function, []).append(check.world_size)
    cases = []
    for check in checks:
        name = f"{check.function[5:]}-{check.world_size}"
        in_short = check.world_size == usual(sizes[check.function])
        marks = () if in_short else pytest.mark.full
        cases.append(pytest.param(check, id=name, marks=marks))
    return pytest.mark.parametrize("check", cases)


def assert_right(verdict: Verdict) -> None:
    """Fail with what the engine saw, unless every rank came through."""
    assert verdict.kind is Kind.RIGHT, verdict.message
