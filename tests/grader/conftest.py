"""Fixtures: a small house, a few lines of code graded in ranks, a class to hide."""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

import pytest

from tests.grader.digests import digest
from tests.grader.small_house import make_house
from tests.grader.support import RIGHT, grade_code
from workshop.grader.engine.engine import Engine

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(engine, tmp_path):
    """``run(code, check=..., ranks=3)`` -> the verdict on ``code``."""
    return functools.partial(grade_code, engine, tmp_path)


@pytest.fixture
def house(tmp_path):
    """A folder of small exercises, none of which is begun."""
    return make_house(tmp_path / "house")


@pytest.fixture(scope="module")
def victim():
    """A file of the workshop that git does not know: no harm if all this fails."""
    folder = ROOT / "build" / f"of-a-test-{os.getpid()}"
    folder.mkdir(parents=True)
    (folder / "program.py").write_text("print('as it was')\n")
    yield folder / "program.py"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def learners(victim):
    """A folder with those of two learners."""
    folder = victim.parent / "class"
    for name in ("alice", "bob"):
        (folder / name).mkdir(parents=True)
        (folder / name / "03_ring_all_reduce.py").write_text(RIGHT)
    return folder


@pytest.fixture(scope="module")
def hiding_engine(learners, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "secret-of-this-test").touch()
    with pytest.MonkeyPatch.context() as patch, Engine(hidden=[learners]) as engine:
        patch.setenv("HOME", str(home))
        engine.warm()
        yield engine


@pytest.fixture(scope="module")
def trees_are_unchanged(learners, victim):
    """After all attempts, the workshop and the learners' files are as they were."""
    before = digest(ROOT), digest(victim.parent)
    yield
    after = digest(victim.parent)
    assert digest(ROOT) == before[0]
    assert {path: after.get(path) for path in before[1]} == before[1]
