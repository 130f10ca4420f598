"""Which tests run again without a package: those that may start its programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOME_TESTS = """
import pytest

LINES = pytest.mark.parametrize("line", ["mpirun: not found", "srun: not found"])

@pytest.fixture
def browser():
    pass

@LINES
def test_runs(line):
    pass

@LINES
def test_types(line, browser):
    pass

@pytest.mark.skipif(False, reason="no mpirun")
def test_is_marked():
    pass

def test_mpirun_of_a_page(browser):
    pass
"""


READS_SCRIPTS = """
import pytest

@pytest.mark.parametrize("script", ["mpirun train.py"])
def test_reads(script):
    pass
"""


def test_a_test_is_kept_for_its_own_parameters_and_not_for_what_it_reads(tmp_path):
    (tmp_path / "test_some.py").write_text(SOME_TESTS)
    (tmp_path / "tests" / "lint").mkdir(parents=True)
    (tmp_path / "tests" / "lint" / "test_reads.py").write_text(READS_SCRIPTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = ["-m", "pytest", "--collect-only", "-q", "-p", "tests.dependents"]
    done = subprocess.run(
        [sys.executable, *words, "--dependents-of", "mpirun,ompi_info", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    kept = [line for line in done.stdout.splitlines() if "::" in line]
    assert kept == [
        "test_some.py::test_runs[mpirun: not found]",
        "test_some.py::test_is_marked",
    ], done.stdout + done.stderr
