"""WORKSHOP_PBS=real: the tests of job scripts submit to whatever PBS is on PATH.

No real one is here, so the rehearsal's own commands on PATH pass for it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
PYTHON = f"{sys.prefix}/bin/python"
TESTS = [
    "tests/jobs/test_pbs_scripts.py::test_script_that_was_submitted_elsewhere_says_so",
    "tests/jobs/test_pbs_scripts.py::test_members_of_an_array_have_ports_of_their_own",
    "tests/jobs/test_pbs_chain.py::test_chain_ends_where_a_job_saved_nothing",
    "tests/jobs/test_pbs_chain.py::test_job_that_loses_a_host_resumes_on_others",
    "tests/jobs/test_pbs_traps.py::test_exit_status_of_pbsdsh_is_always_0",
    "tests/jobs/test_pbs_traps.py::test_double_quotes_are_filled_in_by_the_first_host",
]


def run_tests(before, tmp_path, tests, **variables):
    command = f"cd {ROOT} && WORKSHOP_PBS=real COLD_PYTHON=1 {PYTHON} -m pytest -q -rs "
    command += f"-p no:cacheprovider --basetemp={tmp_path}/tests {' '.join(tests)}"
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return subprocess.run(
        [*before, "/bin/sh", "-c", command],
        cwd=tmp_path,
        env=kept | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
        timeout=500,
    )


@pytest.mark.nightly
@pytest.mark.cold("the tests that it starts have no warm server on another host")
def test_jobs_are_submitted_to_the_pbs_on_path(cluster, tmp_path):
    rehearsal = [PYTHON, "-m", "workshop.cluster.pbs"]
    before = [*rehearsal, "--state", str(cluster.state)]
    done = run_tests(before, tmp_path, TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "11 passed, 1 skipped" in done.stdout, done.stdout
    assert "needs the practice cluster" in done.stdout
    assert int((tmp_path / ".workshop" / "pbs_jobs").read_text()) >= 10


@pytest.mark.cold("the tests that it starts set COLD_PYTHON themselves")
def test_without_a_pbs_its_tests_are_skipped_by_name(tmp_path):
    done = run_tests([], tmp_path, TESTS[1:2], PATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WORKSHOP_PBS=real, but no qsub, qstat, pbsnodes on PATH" in done.stdout
