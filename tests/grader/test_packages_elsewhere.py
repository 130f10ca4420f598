"""Packages may lie in several folders: a ``.venv`` and one more on ``PYTHONPATH``."""

from __future__ import annotations

import os

import pytest

from tests.grader.support import SUM, body, grade_code
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind

PACKAGES = {
    "it asks who called it": """
import sys

def use():
    return sys._getframe(1).f_globals["__name__"]
""",
    "it asks for all objects": """
import gc

def use():
    return gc.get_objects()
""",
    "it wraps a function of Python": """
import random

def seed(*args):
    return _seed(*args)

_seed, random.seed = random.seed, seed
use = dict
""",
}


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """An empty folder in which Python finds packages, through ``PYTHONPATH``."""
    folder = tmp_path / "packages"
    folder.mkdir()
    before = os.environ.get("PYTHONPATH")
    both = os.pathsep.join(filter(None, [str(folder), before]))
    monkeypatch.setenv("PYTHONPATH", both)
    return folder


@pytest.mark.parametrize("what", PACKAGES)
def test_right_answer_that_uses_a_package_of_another_folder_is_right(
    what, packages, tmp_path
):
    (packages / "helpful.py").write_text(PACKAGES[what])
    code = body(f"import helpful\nfound = helpful.use()\n{SUM}return t")
    with Engine() as engine:
        verdict = grade_code(engine, tmp_path, code)
    assert verdict.kind is Kind.RIGHT, verdict.message
