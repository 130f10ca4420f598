"""Numbers of tasks and ranks: DT014, DT118, DT123 and DT124."""

from __future__ import annotations

import pytest

from tests.lint.forms import FIRST, FOUR_TASKS, PORT, TWO_NODES, of_code

TASKS = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks={}\n"
PER_NODE = "#SBATCH --ntasks-per-node={}\n"
ADDRESS = PORT + f"export MASTER_ADDR={FIRST}\n"
EACH = "srun -K bash -c '{}python train.py'\n"
NUMBERED = EACH.format("RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID {}")
STEP = "srun -K -n 8 --ntasks-per-node=4 bash -c 'LOCAL_RANK={} python train.py'\n"
ACCELERATE = (
    "srun -K bash -c 'accelerate launch --num_machines 2 --num_processes {} "
    "--machine_rank $SLURM_NODEID --main_process_ip $MASTER_ADDR train.py'\n"
)
CASES: dict[str, tuple[str, str, list[str]]] = {
    "two tasks of eight": (
        "DT014",
        TASKS.format(2) + PER_NODE.format(4),
        ["3 warning"],
    ),
    "all tasks": ("DT014", TASKS.format(8) + PER_NODE.format(4), []),
    "maximum that one node doesn't reach": (
        "DT014",
        TASKS.format(7) + PER_NODE.format(4),
        [],
    ),
    "one on each node": ("DT014", TASKS.format(2) + PER_NODE.format(1), []),
    "world size of all GPUs, and two tasks": (
        "DT118",
        TASKS.format(2) + "export WORLD_SIZE=8\n" + NUMBERED.format(""),
        ["4 error"],
    ),
    "number of nodes as the world size": (
        "DT118",
        FOUR_TASKS + "export WORLD_SIZE=$SLURM_NNODES\n" + NUMBERED.format(""),
        ["4 error"],
    ),
    "number of nodes as the world size, in the task": (
        "DT118",
        FOUR_TASKS + NUMBERED.format("WORLD_SIZE=$SLURM_NNODES "),
        ["4 error"],
    ),
    "number of tasks as the world size, in the task": (
        "DT118",
        FOUR_TASKS
        + "export WORLD_SIZE=2\n"
        + NUMBERED.format("WORLD_SIZE=$SLURM_NTASKS "),
        [],
    ),
    "shell that may set the world size itself": (
        "DT118",
        FOUR_TASKS + "export WORLD_SIZE=2\n" + EACH.format(". env.sh; "),
        [],
    ),
    "rank of the job as the local rank": (
        "DT123",
        TWO_NODES + STEP.format("$SLURM_PROCID"),
        ["4 error"],
    ),
    "local rank": ("DT123", TWO_NODES + STEP.format("$SLURM_LOCALID"), []),
    "rest of the rank": ("DT123", TWO_NODES + STEP.format("$((SLURM_PROCID % 4))"), []),
    "rank of the job on one node": (
        "DT123",
        FOUR_TASKS.replace("nodes=2", "nodes=1")
        + EACH.format("LOCAL_RANK=$SLURM_PROCID "),
        [],
    ),
    "one task on each of two nodes that have two GPUs": (
        "DT123",
        TWO_NODES + "#SBATCH --gres=gpu:2\n" + EACH.format("LOCAL_RANK=$SLURM_PROCID "),
        [],
    ),
    "processes of one machine": (
        "DT124",
        TWO_NODES + "#SBATCH --gres=gpu:4\n" + ADDRESS + ACCELERATE.format(4),
        ["7 warning"],
    ),
    "processes of all machines": (
        "DT124",
        TWO_NODES + "#SBATCH --gres=gpu:4\n" + ADDRESS + ACCELERATE.format(8),
        [],
    ),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_number_that_does_not_fit_is_told(code, text, told):
    assert of_code(text, code) == told
