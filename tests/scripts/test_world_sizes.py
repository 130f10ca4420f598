"""The short `make test` runs each check of an exercise at one world size."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.world_sizes import usual
from workshop.catalog import load_catalog
from workshop.grader.checks import checks_in

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [({4, 3}, 3), ({2, 3}, 3), ({2, 4}, 4), ({4, 6}, 4), ({1, 2}, 2), ({1}, 1)],
)
def test_usual_size_is_three_or_near(sizes, chosen):
    assert usual(sizes) == chosen


@pytest.mark.full
def test_short_run_has_every_check_of_every_exercise_once():
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--solutions"]
    collect += ["--seeds", "1", "-m", "quick or not full"]
    done = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True)
    found = re.findall(r"^tests/exercises/(\w+)/checks\.py::(\w+)\[", done.stdout, re.M)
    every = {
        (exercise.name, check.function)
        for exercise in load_catalog(ROOT)
        for check in checks_in(exercise.checks, seeds=(1,))
    }
    assert len(every) > 200 and set(found) == every
    assert len(found) == len(every), "a check is run at several world sizes"
