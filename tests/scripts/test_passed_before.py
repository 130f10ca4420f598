"""tools/passed_before.py: the second run of CI leaves out what passed in the first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import passed_before, run_tests

ROOT = Path(__file__).resolve().parents[2]
THREE = """
import pytest

def test_passes(): pass
def test_skips(): pytest.skip("no cluster")
def test_fails(): assert 1 == 2
"""
NAMES_NO_PROGRAM = "tests/scripts/test_editorconfig.py"
NAMES_SBATCH = "tests/jobs/test_lint.py"


def pytest_with(folder, *arguments, written=False, workers=0):
    environment = os.environ | {passed_before.FOLDER: str(folder)}
    environment.pop(passed_before.WRITTEN, None)
    if written:
        environment[passed_before.WRITTEN] = "1"
    words = ["-m", "pytest", "-p", "tools.passed_before", "-p", "no:cacheprovider"]
    words += ["-q", "-n", str(workers), *map(str, arguments)]
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.full
def test_only_what_passed_is_left_out(tmp_path):
    file = tmp_path / "test_three.py"
    file.write_text(THREE)
    first = pytest_with(tmp_path / "passes", file, written=True, workers=2)
    assert "1 failed, 1 passed, 1 skipped" in first
    again = pytest_with(tmp_path / "passes", file, workers=2)
    assert "1 failed, 1 skipped" in again
    assert "left out, since they passed before: 1 test of all parts" in again


@pytest.mark.nightly
def test_what_may_use_a_package_runs_again(tmp_path):
    """Beside the package, it may do something else than without."""
    both = [NAMES_NO_PROGRAM, NAMES_SBATCH]
    shown = pytest_with(tmp_path / "none", "--collect-only", *both)
    ids = [line for line in shown.splitlines() if "::" in line]
    (tmp_path / "passes").mkdir()
    (tmp_path / "passes" / "1.txt").write_text("\n".join(ids))
    left = pytest_with(tmp_path / "passes", "--collect-only", *both)
    kept = [line for line in left.splitlines() if "::" in line]
    assert kept == [one for one in ids if one.startswith(NAMES_SBATCH)] != []
    assert len(kept) < len(ids)


def test_runner_loads_it_where_ci_names_a_folder(monkeypatch):
    part = run_tests.Part("any", ("tests/docs",))
    for folder in ("", "/somewhere"):
        monkeypatch.setenv(passed_before.FOLDER, folder)
        assert ("tools.passed_before" in run_tests.command(part)) == bool(folder)


def test_programs_of_the_first_run_need_not_start_again(monkeypatch):
    monkeypatch.setattr(run_tests.machine, "missing", lambda: ["no sbatch"])
    monkeypatch.setenv(passed_before.FOLDER, "/somewhere")
    monkeypatch.setenv(passed_before.WRITTEN, "1")
    first = run_tests.programs_to_start("short")
    monkeypatch.delenv(passed_before.WRITTEN)
    assert first | run_tests.programs_to_start("full") == run_tests.PROGRAMS
    assert not first & run_tests.programs_to_start("full")
