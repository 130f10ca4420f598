"""The page "Write your own exercise", carried out step by step with its own files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "own_exercise"
NAME = "90_agree_to_stop"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """A copy of the workshop to which the page's files were added."""
    root = tmp_path_factory.mktemp("own") / "workshop"
    kept = ("docs/lessons", "docs/examples/own_exercise")
    for folder in ("exercises", "solutions", "tests/exercises", *kept):
        shutil.copytree(ROOT / folder, root / folder)
    shutil.copy(ROOT / "pyproject.toml", root)
    for folder in ("solutions", "tests"):
        shutil.copytree(EXAMPLE / folder, root / folder, dirs_exist_ok=True)
    with (root / "exercises" / "catalog.toml").open("a") as catalog:
        catalog.write("\n" + (EXAMPLE / "catalog_entry.toml").read_text())
    return root


def run(root: Path, *command: str) -> subprocess.CompletedProcess:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    }
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=300
    )


def test_the_skeleton_is_made_from_the_solution(workshop):
    made = run(workshop, "workshop", "dev", "skeletons", NAME)
    assert made.returncode == 0, made.stderr
    skeleton = (workshop / "exercises" / f"{NAME}.py").read_text()
    assert 'raise NotImplementedError("TODO 1 of 1")' in skeleton
    assert "all_reduce" not in skeleton
    again = run(workshop, "workshop", "dev", "skeletons", NAME)
    assert "up to date" in again.stdout


def test_a_filled_exercise_is_not_overwritten(workshop, tmp_path):
    path = workshop / "exercises" / f"{NAME}.py"
    before = path.read_text()
    path.write_text(before.replace("raise NotImplementedError", "return 3  # "))
    refused = run(workshop, "workshop", "dev", "skeletons", NAME)
    path.write_text(before)
    assert refused.returncode == 2
    assert "holds an answer" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.nightly
def test_checks_find_every_mistake_of_the_page(workshop):
    tried = run(workshop, "workshop", "dev", "check", NAME)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "answers: 1 right, 5 wrong; 0 not as promised" in tried.stdout


@pytest.mark.nightly
def test_an_answer_that_is_not_as_promised_is_a_fault(workshop):
    path = workshop / "tests" / "exercises" / NAME / "answers.md"
    before = path.read_text()
    path.write_text(before.replace("## hang: rank 0", "## hang: rank 7"))
    tried = run(workshop, "workshop", "dev", "check", NAME)
    path.write_text(before)
    assert tried.returncode == 1, tried.stdout + tried.stderr
    assert "rank_0_decides: the message lacks ['rank 7" in tried.stdout


def test_a_new_exercise_is_whole_from_the_beginning(workshop):
    made = run(workshop, "workshop", "dev", "new", "03_agree_on_the_best")
    assert made.returncode == 0, made.stderr
    checked = run(workshop, "workshop", "dev", "check", "03_agree_on_the_best")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    listed = run(workshop, "workshop", "list").stdout
    assert listed.index("03_agree_on_the_best") < listed.index("04_")
    for name, words in (
        ("03_agree_on_the_best", "exists already"),
        ("3_agree", "can't be the name"),
        ("95_agree", "no lesson begins with 95_"),
    ):
        refused = run(workshop, "workshop", "dev", "new", name)
        assert refused.returncode == 2, refused.stdout
        assert words in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.nightly
def test_learners_can_check_it(workshop):
    run(workshop, "workshop", "dev", "skeletons", NAME)
    untouched = run(workshop, "workshop", "check", NAME)
    assert untouched.returncode == 2, untouched.stdout
    path = workshop / "exercises" / f"{NAME}.py"
    before = path.read_text()
    answer = "return loss < target"
    path.write_text(before.replace('raise NotImplementedError("TODO 1 of 1")', answer))
    wrong = run(workshop, "workshop", "check", NAME)
    path.write_text(before)
    assert wrong.returncode == 1, wrong.stdout
    assert "should_stop below the mean" in wrong.stdout
