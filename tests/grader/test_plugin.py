"""The pytest plugin on a small workshop of its own: options, reports, clean ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.grader.test_hostile import processes_with
from tests.launched import wait_until
from workshop.skeleton import skeleton_text

ROOT = Path(__file__).resolve().parents[2]
SOLUTION = '''"""Add the numbers of all ranks.

Check: workshop check 01_sum
"""
import torch.distributed as dist


def answer(t):
    # TODO 1 of 1: sum t over the ranks, in place.
    # [start answer 1]
    dist.all_reduce(t)
    # [end answer 1]
    return t
'''
CHECKS = '''
import pytest, torch
from workshop.grader import expect

@pytest.mark.ranks(2, 3)
def test_sum(exercise, rank, world_size):
    """The sum of the ranks."""
    t = torch.tensor([float(rank)])
    total = world_size * (world_size - 1) / 2
    expect.close(exercise.answer(t), torch.tensor([total]), "the sum")

@pytest.mark.ranks(3)
def test_twice(exercise, seed):
    """Twice is right, too."""
    t = torch.tensor([float(seed)])
    expect.close(exercise.answer(exercise.answer(t)), torch.tensor([9.0 * seed]), "9x")
'''
ENTRY = """
[[exercise]]
name = "{name}"
title = "Sum"
lesson = "01_one_device"
minutes = 5
points = 1
hints = ["a", "b", "c"]
"""


@pytest.fixture
def small_workshop(tmp_path) -> Path:
    """Two exercises, 01_sum and 02_sum, both not started."""
    for folder in ("exercises", "solutions", "tests/exercises"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\naddopts = "-p workshop.plugin"\n'
        'testpaths = ["tests/exercises"]\n'
    )
    names = ["01_sum", "02_sum"]
    entries = "".join(ENTRY.format(name=name) for name in names)
    (tmp_path / "exercises/catalog.toml").write_text(entries)
    for name in names:
        (tmp_path / f"solutions/{name}.py").write_text(SOLUTION)
        (tmp_path / f"exercises/{name}.py").write_text(skeleton_text(SOLUTION))
        checks = tmp_path / f"tests/exercises/{name}/checks.py"
        checks.parent.mkdir()
        checks.write_text(CHECKS)
    return tmp_path


def pytest_in(folder: Path, *arguments: str, **environment: str):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_untouched_exercises_are_skipped_as_not_started(small_workshop):
    done = pytest_in(small_workshop, "-rs")
    assert done.returncode == 0, done.stdout
    assert "8 skipped" in done.stdout
    assert "not started" in done.stdout


def test_what_could_not_be_tried_is_skipped_with_its_reason():
    """A check of a job script without a practice cluster never passes."""
    chosen = ("--solutions", "-k", "09_one_launcher_per_node", "--seeds", "1", "-rs")
    done = pytest_in(ROOT, *chosen, WORKSHOP_NO_CLUSTER="1")
    assert done.returncode == 0, done.stdout
    assert "passed" not in done.stdout
    assert "not fully checked: nothing is wrong so far" in done.stdout
    assert "WORKSHOP_NO_CLUSTER is set" in done.stdout


@pytest.mark.nightly
def test_solutions_pass(small_workshop):
    done = pytest_in(small_workshop, "--solutions")
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout


@pytest.mark.parametrize("path", ["01_sum", "01_sum/checks.py"])
def test_one_exercise_can_be_named_by_its_path(path, small_workshop):
    done = pytest_in(small_workshop, "--solutions", f"tests/exercises/{path}")
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_wrong_answer_fails_with_its_verdict(small_workshop):
    average = "dist.all_reduce(t); t /= dist.get_world_size()"
    wrong = SOLUTION.replace("dist.all_reduce(t)", average)
    (small_workshop / "exercises/01_sum.py").write_text(wrong)
    done = pytest_in(small_workshop)
    assert done.returncode == 1
    assert "divided by the world size twice" in done.stdout
    assert "Traceback" not in done.stdout
    assert "4 skipped" in done.stdout


@pytest.mark.nightly
def test_x_k_and_seeds_choose_what_runs(small_workshop):
    wrong = SOLUTION.replace("dist.all_reduce(t)", "pass")
    (small_workshop / "exercises/01_sum.py").write_text(wrong)
    assert "1 failed" in pytest_in(small_workshop, "-x").stdout
    only = pytest_in(small_workshop, "--solutions", "-k", "01_sum and twice").stdout
    assert "2 passed" in only
    assert "6 deselected" in only
    seeds = pytest_in(small_workshop, "--solutions", "--seeds", "5,6,7", "-v").stdout
    assert "test_twice[3-7]" in seeds
    assert "10 passed" in seeds


@pytest.mark.nightly
def test_exercises_of_another_folder_are_graded(small_workshop, tmp_path):
    theirs = tmp_path / "ada"
    theirs.mkdir()
    (theirs / "01_sum.py").write_text(SOLUTION)
    done = pytest_in(small_workshop, "--exercises", str(theirs))
    assert "4 passed" in done.stdout
    assert "02_sum.py is missing" in done.stdout
    unknown = pytest_in(small_workshop, "--exercises", "nowhere")
    assert unknown.returncode == 4
    assert "there is no folder nowhere" in unknown.stderr


@pytest.mark.nightly
def test_xdist_and_junit_report_the_same(small_workshop):
    wrong = SOLUTION.replace("dist.all_reduce(t)", "pass")
    (small_workshop / "exercises/01_sum.py").write_text(wrong)
    done = pytest_in(small_workshop, "-n", "2", "--junitxml", "out.xml")
    assert "4 failed, 4 skipped" in done.stdout
    suite = ElementTree.parse(small_workshop / "out.xml").getroot()[0]
    failures = [
        case.find("failure") for case in suite if case.find("failure") is not None
    ]
    assert len(failures) == 4
    assert all("wrong value" in (failure.text or "") for failure in failures)


@pytest.mark.full
def test_verbose_shows_the_ledger(small_workshop):
    wrong = SOLUTION.replace("dist.all_reduce(t)", "dist.all_reduce(t); t += 1")
    (small_workshop / "exercises/01_sum.py").write_text(wrong)
    done = pytest_in(small_workshop, "-v", "-x")
    assert "details:" in done.stdout
    assert "all_reduce(float32[1], SUM) at line 11" in done.stdout


def test_check_without_a_mark_is_one_sentence(small_workshop):
    path = small_workshop / "tests/exercises/01_sum/checks.py"
    path.write_text("def test_it(exercise):\n    pass\n")
    done = pytest_in(small_workshop)
    assert done.returncode == 2
    assert "test_it needs @pytest.mark.ranks(N)" in done.stdout
    assert "Traceback" not in done.stdout


SLEEPS = SOLUTION.replace(
    "dist.all_reduce(t)",
    "import time, os\n    os.fork() or time.sleep(99)\n    time.sleep(99)",
)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_run_leaves_no_process(small_workshop, number):
    (small_workshop / "exercises/01_sum.py").write_text(SLEEPS)
    token = uuid.uuid4().hex
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-k", "01_sum"],
        cwd=small_workshop,
        env=os.environ | {"WORKSHOP_TEST_TOKEN": token},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    # pytest, server, supervisor, two ranks, two grandchildren
    wait_until(lambda: len(processes_with(token)) >= 7, 60)
    run.send_signal(number)
    run.wait(30)
    if number == signal.SIGINT:
        assert run.returncode == pytest.ExitCode.INTERRUPTED
    wait_until(lambda: processes_with(token) == [], 15)
