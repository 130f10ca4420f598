"""What a dry run of a job script takes from its directives, and when it ends."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.launched import wait_until
from workshop.cluster.jobs.on_paper import _run, _variables_of_slurm
from workshop.system import processes
from workshop.system.stopwatch import TreeStopwatch


@pytest.mark.parametrize(
    ("directives", "per_node", "tasks"),
    [
        ("#SBATCH --ntasks-per-node=2\n", "2", "4"),
        ("#SBATCH --ntasks-per-node 2\n", "2", "4"),
        ("#SBATCH --tasks-per-node=2\n", "2", "4"),
        ("#SBATCH --nodes=2\n", None, "2"),
        ("date\n#SBATCH --ntasks-per-node=2\n", None, "2"),
    ],
)
def test_tasks_are_those_of_a_directive_that_slurm_reads(
    tmp_path, directives, per_node, tasks
):
    script = tmp_path / "job.sbatch"
    script.write_text(f"#!/bin/bash\n{directives}srun ./job.sh\n", encoding="utf-8")
    variables = _variables_of_slurm(tmp_path, script, ["n1", "n2"], 0)
    assert variables.get("SLURM_NTASKS_PER_NODE") == per_node
    assert variables["SLURM_NTASKS"] == tasks


def test_script_that_waits_for_ever_ends_with_all_that_it_started(tmp_path):
    """What it had printed by then is kept."""
    text = "sleep 600 & echo $!; cat <(sleep 600)"
    status, output = _run(["bash", "-c", text], tmp_path, dict(os.environ), 0.5)
    assert status is None
    pid = int(output)
    wait_until(lambda: not Path(f"/proc/{pid}/cwd").exists())


def test_seconds_without_a_core_are_not_those_of_the_script(tmp_path, monkeypatch):
    text = "sleep 1.2; echo done"
    command = ["bash", "-c", text]
    status, _ = _run(command, tmp_path, dict(os.environ), 0.5)
    assert status is None
    # as if it had been ready all the time, and others had the cores
    monkeypatch.setattr(processes, "state_of", lambda pid: "R")
    status, output = _run(command, tmp_path, dict(os.environ), 0.5)
    assert (status, output) == (0, "done\n")


def test_seconds_of_programs_that_have_ended_are_those_of_the_script():
    """The loop runs in a process of its own, which has ended when "done" is printed."""
    text = "(for ((i = 0; i < 100000; i++)); do :; done); echo done; sleep 600"
    with subprocess.Popen(["bash", "-c", text], stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == b"done\n"
        watch = TreeStopwatch(job.pid)
        watch.passed(limit=600)
        job.kill()
    assert watch.on_core > 0.05  # the loop needs about 0.2 s
