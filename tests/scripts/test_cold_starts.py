"""Every program of src/ starts in a new interpreter; most tests start it warm."""

import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
PROGRAMS = [p for p in sorted(SRC.glob("*.py")) if "__main__" in p.read_text("utf-8")]


@pytest.mark.full
@pytest.mark.cold("the start is what it is about")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_starts_cold(path):
    """It prints its usage, or works without one, or says that it needs a launcher."""
    done = subprocess.run(
        [sys.executable, path, "--help"], capture_output=True, text=True, timeout=300
    )
    if done.returncode == 0:
        assert done.stdout and not done.stderr
    else:
        assert "torchrun did not start this process" in done.stderr, done.stderr
