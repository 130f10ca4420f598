"""Tasks on other hosts, and what they get there: DT101, DT125 to DT129."""

from __future__ import annotations

import pytest

from tests.lint.forms import C10D, FOUR_TASKS, TWO_HOSTS, TWO_NODES, of_code
from workshop.lint.linting import lint

FOUR_EACH = TWO_HOSTS.format(ranks=4)
PBS_RUN = C10D.format(endpoint="node01:29512").replace("SLURM_JOB_ID", "PBS_JOBID")
COUNTED = PBS_RUN.replace("nnodes=2", "nnodes=$N") + "\n"
SSH = (
    "for i in 0 1; do\n  ssh node$i {}'torchrun --nnodes=2 --node-rank=$i "
    "--nproc-per-node=4 --master-addr=node0 train.py{}'{}\ndone\n"
)
ON_EACH = (
    "pbsdsh -- bash -lc {0}cd $PBS_O_WORKDIR && torchrun --nnodes=2 "
    "--nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$head:29512 a.py{0}\n"
)
HEAD = "export head=$(head -n 1 $PBS_NODEFILE)\n"
CASES: dict[str, tuple[str, str, list[str]]] = {
    "a launcher for each line of the hosts": (
        "DT101",
        FOUR_EACH + "mpiexec --hostfile $PBS_NODEFILE " + PBS_RUN,
        ["5 error"],
    ),
    "a launcher for each host of another file": (
        "DT101",
        FOUR_EACH
        + "sort -u $PBS_NODEFILE > hosts\nmpiexec --hostfile hosts "
        + PBS_RUN,
        [],
    ),
    "a launcher for each of the hosts, by number": (
        "DT101",
        FOUR_EACH + "mpiexec -n 2 --ppn 1 --hostfile $PBS_NODEFILE " + PBS_RUN,
        [],
    ),
    "list without ALL": (
        "DT125",
        TWO_NODES + "srun -K --export=NCCL_DEBUG=INFO python train.py\n",
        ["4 warning"],
    ),
    "nothing": (
        "DT125",
        TWO_NODES + "srun -K --export=NONE torchrun --standalone train.py\n",
        ["4 warning"],
    ),
    "list with ALL": (
        "DT125",
        TWO_NODES + "srun -K --export=ALL,NCCL_DEBUG=INFO python train.py\n",
        [],
    ),
    "list with PATH": (
        "DT125",
        TWO_NODES + "srun -K --export=PATH,NCCL_DEBUG=INFO python train.py\n",
        [],
    ),
    "list in a variable": (
        "DT125",
        TWO_NODES + "srun -K --export=$EXPORTED python train.py\n",
        [],
    ),
    "nothing, for a login shell": (
        "DT125",
        TWO_NODES + "srun -K --export=NONE bash -lc 'python train.py'\n",
        [],
    ),
    "nothing, for a program by its path": (
        "DT125",
        TWO_NODES + "srun -K --export=NONE /opt/python/bin/python train.py\n",
        [],
    ),
    "ssh in a loop": ("DT126", SSH.format("", "", ""), ["2 error"]),
    "srun for one node in a loop": (
        "DT126",
        TWO_NODES
        + "for n in a b; do\n  srun -N 1 -n 1 -w $n "
        + C10D.format(endpoint="a:29512")
        + "\ndone\n",
        ["5 error"],
    ),
    "srun for all nodes in a loop": (
        "DT126",
        TWO_NODES
        + "for lr in 1 2; do\n  srun "
        + C10D.format(endpoint="a:29512")
        + "\ndone\n",
        [],
    ),
    "pbsdsh for one host in a loop": (
        "DT126",
        TWO_HOSTS.format(ranks=1)
        + "for i in 0 1; do\n  pbsdsh -n $i -- bash -lc '"
        + PBS_RUN
        + "'\ndone\n",
        ["6 error"],
    ),
    "ssh in the background": ("DT126", SSH.format("", "", " &") + "wait\n", []),
    "ssh that goes to the background": ("DT126", SSH.format("-f ", "", ""), []),
    "launcher in the background of the other host": (
        "DT126",
        SSH.format("", " > log 2>&1 &", ""),
        [],
    ),
    "launcher in a terminal that stays on the other host": (
        "DT126",
        SSH.format("tmux new -d ", "", ""),
        [],
    ),
    "a run of its own on each host": (
        "DT126",
        SSH.format("", "", "").replace("nnodes=2", "nnodes=1"),
        [],
    ),
    "loop in the background": (
        "DT126",
        SSH.format("", "", "").rstrip("\n") + " &\nwait\n",
        [],
    ),
    "lines of the hosts counted": (
        "DT127",
        FOUR_EACH + "N=$(wc -l < $PBS_NODEFILE)\nmpiexec -n 2 --ppn 1 " + COUNTED,
        ["5 error"],
    ),
    "lines counted by a pipe": (
        "DT127",
        FOUR_EACH + "N=$(cat $PBS_NODEFILE | wc -l)\nmpiexec -n 2 --ppn 1 " + COUNTED,
        ["5 error"],
    ),
    "hosts counted": (
        "DT127",
        FOUR_EACH
        + "N=$(sort -u $PBS_NODEFILE | wc -l)\nmpiexec -n 2 --ppn 1 "
        + COUNTED,
        [],
    ),
    "one line for each host": (
        "DT127",
        TWO_HOSTS.format(ranks=1)
        + "N=$(wc -l < $PBS_NODEFILE)\nmpiexec -n 2 --ppn 1 "
        + COUNTED,
        [],
    ),
    "ranks counted": (
        "DT127",
        FOUR_EACH + "N=$(wc -l < $PBS_NODEFILE)\nmpiexec -n $N python train.py\n",
        [],
    ),
    "mpirun of conda": (
        "DT128",
        FOUR_EACH + "$CONDA_PREFIX/bin/mpirun -np 8 python train.py\n",
        ["5 warning"],
    ),
    "mpirun of conda with the hosts": (
        "DT128",
        FOUR_EACH + "~/miniconda3/bin/mpirun -hostfile hosts -np 8 python train.py\n",
        [],
    ),
    "mpirun of the site": ("DT128", FOUR_EACH + "/opt/mpi/bin/mpirun -np 8 a.py\n", []),
    "exported variable in single quotes": (
        "DT129",
        TWO_HOSTS.format(ranks=1) + HEAD + ON_EACH.format("'"),
        ["6 error"],
    ),
    "variable in double quotes": (
        "DT129",
        TWO_HOSTS.format(ranks=1) + HEAD + ON_EACH.format('"'),
        [],
    ),
    "variable that the task sets": (
        "DT129",
        TWO_HOSTS.format(ranks=1)
        + HEAD
        + ON_EACH.format("'").replace("cd ", "head=$(head -n 1 hosts); cd "),
        [],
    ),
    "variable that a file of the task sets": (
        "DT129",
        TWO_HOSTS.format(ranks=1)
        + HEAD
        + ON_EACH.format("'").replace("cd ", "source /shared/env.sh; cd "),
        [],
    ),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_task_on_another_host_gets_what_it_needs(code, text, told):
    assert of_code(text, code) == told


def test_cure_of_a_list_keeps_its_names():
    text = FOUR_TASKS + "srun -K --export=A=1,B=2 python train.py\n"
    (found,) = (each for each in lint(text) if each.rule.code == "DT125")
    assert found.cure == "--export=ALL,A=1,B=2"
