"""What a step takes of its job: DT130, DT131, DT132 and DT133."""

from __future__ import annotations

import pytest

from tests.lint.forms import FOUR_TASKS, ONE_NODE, TWO_NODES, of_code
from workshop.lint.linting import lint
from workshop.lint.script import Script

TORCHRUN = "torchrun --standalone --nproc-per-node=4 train.py\n"
CORES = FOUR_TASKS + "#SBATCH --cpus-per-task=7\n"
HOSTS = (
    "#!/bin/bash\n#PBS -l select=2:ncpus=64:ngpus=4\n#PBS -l place=scatter\n"
    "cd $PBS_O_WORKDIR\n"
)
EACH = "srun -K bash -c '{} python train.py'\n"
FILE = (
    "cat > w.sh <<'END'\n#!/bin/bash\n{}\nexec \"$@\"\nEND\nsrun -K ./w.sh python a\n"
)
CASES: dict[str, tuple[str, str, list[str]]] = {
    "apptainer without its option": (
        "DT130",
        ONE_NODE + "apptainer exec a.sif " + TORCHRUN,
        ["4 warning"],
    ),
    "apptainer with it": (
        "DT130",
        ONE_NODE + "apptainer exec --nv a.sif " + TORCHRUN,
        [],
    ),
    "singularity of each task": (
        "DT130",
        FOUR_TASKS + "#SBATCH --gpus-per-task=1\n"
        "srun -K singularity run -B /data $SIF python train.py\n",
        ["5 warning"],
    ),
    "singularity in front of a shell": (
        "DT130",
        ONE_NODE + "singularity exec a.sif bash -c 'source e; " + TORCHRUN[:-1] + "'\n",
        ["4 warning"],
    ),
    "singularity with its option, in front of a shell": (
        "DT130",
        ONE_NODE + "singularity exec --nv a.sif bash -c '" + TORCHRUN[:-1] + "'\n",
        [],
    ),
    "option in the environment": (
        "DT130",
        ONE_NODE + "export APPTAINER_NV=1\napptainer exec a.sif " + TORCHRUN,
        [],
    ),
    "option in a variable": (
        "DT130",
        ONE_NODE + "O='--nv -B /data'\napptainer exec $O a.sif " + TORCHRUN,
        [],
    ),
    "variable that may hold the option": (
        "DT130",
        ONE_NODE + "apptainer exec $OPTS $SIF " + TORCHRUN,
        [],
    ),
    "variable that is the value of an option": (
        "DT130",
        ONE_NODE + "apptainer exec --bind $DATA $SIF " + TORCHRUN,
        ["4 warning"],
    ),
    "devices of AMD": (
        "DT130",
        ONE_NODE + "apptainer exec pytorch-rocm-6.2.sif " + TORCHRUN,
        [],
    ),
    "job without GPUs": (
        "DT130",
        "#!/bin/bash\n#SBATCH --nodes=1\napptainer exec a.sif python train.py\n",
        [],
    ),
    "command that doesn't train": (
        "DT130",
        ONE_NODE + "apptainer exec a.sif ls\n" + TORCHRUN,
        [],
    ),
    "docker, and an image that is made for GPUs": (
        "DT130",
        "docker run --rm -v $PWD:/w nvcr.io/nvidia/pytorch:24.10-py3 " + TORCHRUN,
        ["1 warning"],
    ),
    "docker with its option": (
        "DT130",
        "docker run --gpus=all nvcr.io/nvidia/pytorch:24.10-py3 " + TORCHRUN,
        [],
    ),
    "docker with another runtime": (
        "DT130",
        "docker run --runtime=nvidia nvcr.io/nvidia/pytorch:24.10-py3 " + TORCHRUN,
        [],
    ),
    "docker with a variable of NVIDIA": (
        "DT130",
        "docker run -e NVIDIA_VISIBLE_DEVICES=0 nvidia/cuda:12 " + TORCHRUN,
        [],
    ),
    "docker, and another image": ("DT130", "docker run python:3 " + TORCHRUN, []),
    "docker that may run on the cores": (
        "DT130",
        "docker run nvcr.io/nvidia/pytorch:24.10-py3 python tokenize.py\n",
        [],
    ),
    "podman-hpc": (
        "DT130",
        ONE_NODE + "podman-hpc run --rm --gpu a/b:1 " + TORCHRUN,
        [],
    ),
    "local rank as the rank": (
        "DT131",
        FOUR_TASKS + EACH.format("RANK=$SLURM_LOCALID"),
        ["4 error"],
    ),
    "local rank that is exported": (
        "DT131",
        FOUR_TASKS + EACH.format("export RANK=${SLURM_LOCALID};"),
        ["4 error"],
    ),
    "local rank by env": (
        "DT131",
        FOUR_TASKS + EACH.format("env RANK=$SLURM_LOCALID"),
        ["4 error"],
    ),
    "local rank of Open MPI": (
        "DT131",
        HOSTS + "mpirun -np 8 bash -c 'RANK=$OMPI_COMM_WORLD_LOCAL_RANK python a.py'\n",
        ["5 error"],
    ),
    "local rank in a file": (
        "DT131",
        FOUR_TASKS + FILE.format("export RANK=$SLURM_LOCALID"),
        ["6 error"],
    ),
    "rank of the job in a file": (
        "DT131",
        FOUR_TASKS + FILE.format("export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID"),
        [],
    ),
    "local rank on one node": (
        "DT131",
        FOUR_TASKS.replace("nodes=2", "nodes=1") + EACH.format("RANK=$SLURM_LOCALID"),
        [],
    ),
    "run of its own on each node, by its size": (
        "DT131",
        FOUR_TASKS + EACH.format("RANK=$SLURM_LOCALID WORLD_SIZE=4"),
        [],
    ),
    "run of its own on each node, by its address": (
        "DT131",
        FOUR_TASKS + EACH.format("MASTER_ADDR=$(hostname) RANK=$SLURM_LOCALID"),
        [],
    ),
    "local rank, and the size of the whole job": (
        "DT131",
        FOUR_TASKS + EACH.format("RANK=$SLURM_LOCALID WORLD_SIZE=8"),
        ["4 error"],
    ),
    "rank that is computed": (
        "DT131",
        FOUR_TASKS + EACH.format("RANK=$((SLURM_NODEID * 4 + SLURM_LOCALID))"),
        [],
    ),
    "rank that is set again": (
        "DT131",
        FOUR_TASKS + EACH.format("RANK=$SLURM_LOCALID; export RANK=$SLURM_PROCID;"),
        [],
    ),
    "rank that torchrun sets": (
        "DT131",
        TWO_NODES + "srun -K bash -c 'export RANK=$SLURM_LOCALID; torchrun --nnodes=2 "
        "--rdzv-backend=c10d --rdzv-endpoint=a:1 a.py'\n",
        [],
    ),
    "twice the cores of the job": (
        "DT132",
        CORES + "srun -K --ntasks-per-node=4 --cpus-per-task=14 python a.py\n",
        ["5 warning"],
    ),
    "twice the tasks of the job": (
        "DT132",
        CORES + "srun -K -n 16 -c 7 python a.py\n",
        ["5 warning"],
    ),
    "cores of the job": ("DT132", CORES + "srun -K -c 7 python a.py\n", []),
    "fewer tasks with more cores": (
        "DT132",
        CORES + "srun -K -n 2 --ntasks-per-node=1 -c 28 python a.py\n",
        [],
    ),
    "cores of whole nodes": (
        "DT132",
        CORES + "#SBATCH --exclusive\nsrun -K -c 14 python a.py\n",
        [],
    ),
    "cores that no directive asks for": (
        "DT132",
        FOUR_TASKS + "srun -K -c 14 python a.py\n",
        [],
    ),
    "number of cores that isn't known": (
        "DT132",
        CORES + "srun -K -c $SLURM_CPUS_ON_NODE python a.py\n",
        [],
    ),
    "all ranks on the first host": (
        "DT133",
        HOSTS + "mpiexec -n 8 --ppn 8 python a.py\n",
        ["5 warning"],
    ),
    "ranks of both hosts": ("DT133", HOSTS + "mpiexec -n 8 --ppn 4 python a.py\n", []),
    "ranks of four hosts": (
        "DT133",
        HOSTS + "mpiexec -n 16 --ppn 4 python a.py\n",
        ["5 warning"],
    ),
    "one rank": ("DT133", HOSTS + "mpiexec -n 1 --ppn 1 python a.py\n", []),
    "hosts of a list": (
        "DT133",
        HOSTS + "mpiexec --hosts a -n 4 --ppn 4 python a.py\n",
        [],
    ),
    "several steps": (
        "DT133",
        HOSTS + "mpiexec -n 4 --ppn 4 python a.py\nmpiexec -n 4 --ppn 4 python b.py\n",
        [],
    ),
    "ranks that aren't known": (
        "DT133",
        HOSTS + "mpiexec -n $1 --ppn 4 python a.py\n",
        [],
    ),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_step_is_told(code, text, told):
    assert of_code(text, code) == told


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ("N=$(wc -l < $PBS_NODEFILE)\n", 2),
        ('N=$(cat "${PBS_NODEFILE}" | wc -l)\n', 2),
        ("N=$(sort -u $PBS_NODEFILE | wc -l)\n", 2),
        ("A=$(wc -l < $PBS_NODEFILE)\nN=$((A * 4))\n", 8),
        ("A=4\nB=2\nlet N=${A}*${B}\n", 8),
        ("N=4\nN=$((N + 1))\n", None),
        ("N=$(wc -l < hosts)\n", None),
        ("N=$(grep -c a $PBS_NODEFILE)\n", None),
    ],
)
def test_number_is_computed_from_what_the_script_says(lines, number):
    assert Script("x", HOSTS + lines).number("$N") == number


def test_lines_of_each_rank_are_no_number_of_hosts():
    text = HOSTS.replace("ngpus", "mpiprocs") + "N=$(wc -l < $PBS_NODEFILE)\n"
    assert Script("x", text).number("$N") is None


def test_cure_of_a_step_fits_into_the_job():
    text = CORES + "srun -K -c 14 python a.py\n"
    (found,) = (each for each in lint(text) if each.rule.code == "DT132")
    assert found.cure == "srun --cpus-per-task=7 ..., or #SBATCH --cpus-per-task=14"
