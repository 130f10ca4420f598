"""Beginnings of scripts, and what one rule says of a whole one."""

from __future__ import annotations

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
