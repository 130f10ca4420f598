"""What a dry run of a job script takes from its directives."""

from __future__ import annotations

import pytest

from workshop.cluster.jobs.on_paper import _variables_of_slurm


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
