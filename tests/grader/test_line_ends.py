"""A job script with the line ends of Windows is refused, in its scheduler's words."""

from __future__ import annotations

import codecs
import subprocess
from pathlib import Path

import pytest

from workshop.catalog import load_catalog
from workshop.cluster.jobs.refused import refusal
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind

ROOT = Path(__file__).resolve().parents[2]
EXERCISES = load_catalog(ROOT)
JOBS = [one for one in EXERCISES if one.suffix in (".sbatch", ".pbs")]
WORDS = {
    ".sbatch": "sbatch: error: Batch script contains DOS line breaks (\\r\\n)",
    ".pbs": "qsub: script contains cr, lf",
}


def with_dos_lines(path: Path) -> bytes:
    return path.read_bytes().replace(b"\n", b"\r\n")


def read_as(exercise, raw: bytes, folder: Path):
    """The verdict on a file with these bytes before anything of it runs."""
    path = folder / exercise.file
    path.write_bytes(raw)
    return Engine().read(exercise, path)[1]


@pytest.mark.parametrize("exercise", JOBS, ids=lambda one: one.name)
def test_right_job_script_with_dos_lines_is_refused(exercise, tmp_path):
    verdict = read_as(exercise, with_dos_lines(exercise.solution), tmp_path)
    assert verdict is not None, "a script that its scheduler refuses was accepted"
    assert verdict.kind is Kind.NOT_LOADED
    assert WORDS[exercise.suffix] in verdict.message
    cure = f"sed -i 's/\\r$//' exercises/{exercise.file}"
    assert cure in verdict.message


def test_cure_for_dos_lines_mends_the_script(tmp_path):
    script = tmp_path / "job.sbatch"
    script.write_bytes(b"#!/bin/bash\r\necho hello\r\n")
    cure = refusal(script.read_bytes(), ".sbatch", str(script))[-1].partition(": ")[2]
    subprocess.run(["sh", "-c", cure], check=True)
    assert script.read_bytes() == b"#!/bin/bash\necho hello\n"


def test_cure_for_a_byte_order_mark_mends_the_script(tmp_path):
    script = tmp_path / "job.sbatch"
    script.write_bytes(codecs.BOM_UTF8 + b"#!/bin/bash\n")
    said = refusal(script.read_bytes(), ".sbatch", str(script))
    assert "This does not look like a batch script" in said[0]
    subprocess.run(["sh", "-c", said[-1].partition(": ")[2]], check=True)
    assert script.read_bytes() == b"#!/bin/bash\n"


def test_unchanged_job_script_with_dos_lines_is_not_started(tmp_path):
    exercise = JOBS[0]
    verdict = read_as(exercise, with_dos_lines(exercise.path), tmp_path)
    assert verdict is not None and verdict.kind is Kind.NOT_STARTED


def test_program_may_have_dos_lines(tmp_path):
    exercise = next(one for one in EXERCISES if one.suffix == ".py")
    raw = with_dos_lines(exercise.solution)
    assert read_as(exercise, raw, tmp_path) is None


@pytest.mark.parametrize(
    "name",
    [
        "Makefile",
        ".ci/run",
        "job_scripts/multinode_torchrun.sbatch",
        "job_scripts/multinode_torchrun.pbs",
        "job_scripts/site_environment.sh",
        "exercises/09_dead_task.sbatch",
        "src/01_single_device.py",
    ],
)
def test_git_never_gives_scripts_the_line_ends_of_windows(name):
    command = ["git", "check-attr", "text", "eol", "--", name]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"{name}: eol: lf" in said.stdout, said.stdout
