"""Mistakes that the linter once missed, each beside a right script much like it."""

from __future__ import annotations

import pytest

from workshop.lint.linting import lint

ONE_NODE = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\n"
TWO_NODES = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n"
FOUR_TASKS = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
TWO_HOSTS = (
    "#!/bin/bash\n#PBS -l select=2:ncpus=8:mpiprocs={ranks}\n#PBS -l place=scatter\n"
    "cd $PBS_O_WORKDIR\n"
)
TORCHRUN = "torchrun --standalone --nproc-per-node=4 train.py\n"
C10D = (
    "torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d "
    "--rdzv-id=$SLURM_JOB_ID --rdzv-endpoint={endpoint} train.py"
)
STATIC = (
    "torchrun --nnodes=2 --nproc-per-node=4 --node-rank=$SLURM_NODEID "
    "--master-addr=$MASTER_ADDR --master-port=$MASTER_PORT train.py"
)
PORT = "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\n"
FIRST = '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'


def of_code(text: str, code: str) -> list[str]:
    found = [each for each in lint(text) if each.rule.code == code]
    return [f"{each.line} {each.severity}" for each in found]


# What is reported by one rule: its code, the script, and "LINE SEVERITY" of each.
CASES: dict[str, tuple[str, str, list[str]]] = {
    "one device for four ranks": (
        "DT121",
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=0\n" + TORCHRUN,
        ["4 error"],
    ),
    "two devices for four ranks": (
        "DT121",
        ONE_NODE + 'D=0,1\nexport CUDA_VISIBLE_DEVICES="$D"\n' + TORCHRUN,
        ["5 error"],
    ),
    "one device in front of the command": (
        "DT121",
        ONE_NODE + "CUDA_VISIBLE_DEVICES=0 " + TORCHRUN,
        ["4 error"],
    ),
    "one device by env": (
        "DT121",
        ONE_NODE + "env HIP_VISIBLE_DEVICES=0 " + TORCHRUN,
        ["4 error"],
    ),
    "one device in the shell of the task": (
        "DT121",
        ONE_NODE + "srun bash -c 'CUDA_VISIBLE_DEVICES=0 " + TORCHRUN + "'\n",
        ["4 error"],
    ),
    "one device that srun exports, where Slurm may set another": (
        "DT121",
        ONE_NODE + "srun --export=ALL,CUDA_VISIBLE_DEVICES=0 " + TORCHRUN,
        ["4 warning"],
    ),
    "one device for the processes of accelerate": (
        "DT121",
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=0\n"
        "accelerate launch --num_machines 1 --num_processes 4 train.py\n",
        ["4 error"],
    ),
    "as many devices as ranks": (
        "DT121",
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=0,1,2,3\n" + TORCHRUN,
        [],
    ),
    "one device for another command": (
        "DT121",
        ONE_NODE + "CUDA_VISIBLE_DEVICES=0 python prepare.py\n" + TORCHRUN,
        [],
    ),
    "one device in a subshell": (
        "DT121",
        ONE_NODE + "(export CUDA_VISIBLE_DEVICES=0; python prepare.py)\n" + TORCHRUN,
        [],
    ),
    "one device that only a branch leaves": (
        "DT121",
        ONE_NODE + "if [ $1 ]; then\n  export CUDA_VISIBLE_DEVICES=0\nfi\n" + TORCHRUN,
        [],
    ),
    "a device for each rank": (
        "DT121",
        FOUR_TASKS + "export CUDA_VISIBLE_DEVICES=0\nsrun -K bash -c "
        "'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID python train.py'\n",
        [],
    ),
    "list that is forgotten again": (
        "DT121",
        ONE_NODE
        + "export CUDA_VISIBLE_DEVICES=0\npython a.py\nunset CUDA_VISIBLE_DEVICES\n"
        + TORCHRUN,
        [],
    ),
    "ranks that use no device": (
        "DT121",
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=-1\n" + TORCHRUN,
        [],
    ),
    "deepspeed, which drops the list": (
        "DT121",
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=0\ndeepspeed --num_gpus 4 train.py\n",
        [],
    ),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_rule_reports_the_mistake_and_nothing_else(code, text, told):
    assert of_code(text, code) == told
