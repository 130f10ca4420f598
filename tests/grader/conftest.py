"""Fixtures: a small house, and a few lines of code graded in ranks."""

from __future__ import annotations

import functools

import pytest

from tests.grader.small_house import make_house
from tests.grader.support import grade_code


@pytest.fixture
def run(engine, tmp_path):
    """``run(code, check=..., ranks=3)`` -> the verdict on ``code``."""
    return functools.partial(grade_code, engine, tmp_path)


@pytest.fixture
def house(tmp_path):
    """A folder of small exercises, none of which is begun."""
    return make_house(tmp_path / "house")
