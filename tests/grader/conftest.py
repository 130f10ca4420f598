"""Fixtures: one warm engine, and a way to grade a few lines of code in ranks."""

from __future__ import annotations

import functools

import pytest

from grader.engine import Engine
from tests.grader.support import grade_code


@pytest.fixture(scope="session")
def engine():
    with Engine() as engine:
        engine.warm()
        yield engine


@pytest.fixture
def run(engine, tmp_path):
    """``run(code, check=..., ranks=3)`` -> the verdict on ``code``."""
    return functools.partial(grade_code, engine, tmp_path)
