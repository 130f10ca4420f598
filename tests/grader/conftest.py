"""A fixture to grade a few lines of code in ranks, by the engine of all tests."""

from __future__ import annotations

import functools

import pytest

from tests.grader.support import grade_code


@pytest.fixture
def run(engine, tmp_path):
    """``run(code, check=..., ranks=3)`` -> the verdict on ``code``."""
    return functools.partial(grade_code, engine, tmp_path)
