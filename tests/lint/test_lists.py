"""Numbers of lines and elements (DT218, DT219), and what NCCL reads."""

from __future__ import annotations

import pytest

from tests.lint.forms import C10D, FOUR_TASKS, ONE_NODE, TORCHRUN, TWO_NODES, of_code
from workshop.lint.linting import lint

LIST = 'nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))\n'
ARRAY = "#!/bin/bash\n#SBATCH --array={}\n{}\npython a.py\n"
HOST = LIST + "for {}; do\n  srun -N1 -n1 -w {} ./a &\ndone\n"
SINGLE = FOUR_TASKS + "#SBATCH --gpu-bind=single:1\nsrun -K bash -c '{}'\n"
PDSH = "pdsh -w {} 'torchrun --nnodes=4 --node-rank={} --master-addr=n1 a.py'\n"
SIZE = "srun -K fairseq-train data {}\n"
CASES: dict[str, tuple[str, str, list[str]]] = {
    "line 0": ("DT218", "A=$(scontrol show hostnames | sed -n 0p)\n", ["1 error"]),
    "line 0 in quotes": ("DT218", "sed -n '0p' hosts\n", ["1 error"]),
    "line 0 of awk": ("DT218", "awk 'NR==0' hosts\n", ["1 error"]),
    "line 1": ("DT218", "sed -n 1p hosts\nawk 'NR==1' hosts\n", []),
    "line 10": ("DT218", "sed -n 10p hosts\n", []),
    "line of the first task": (
        "DT218",
        ARRAY.format("0-9", 'sed -n "${SLURM_ARRAY_TASK_ID}p" a'),
        ["3 error"],
    ),
    "line of the first task, in a variable": (
        "DT218",
        ARRAY.format("0-9%2", 'i=$SLURM_ARRAY_TASK_ID\nsed -n "${i}p" a'),
        ["4 error"],
    ),
    "line of the first task, by awk": (
        "DT218",
        ARRAY.format("0-9", 'awk "NR==$SLURM_ARRAY_TASK_ID" a'),
        ["3 error"],
    ),
    "line of the first task, by head": (
        "DT218",
        ARRAY.format("0-9", "x=$(head -n $SLURM_ARRAY_TASK_ID a | tail -n 1)"),
        ["3 error"],
    ),
    "lines of head": ("DT218", ARRAY.format("0-9", "head -n 0 a"), []),
    "line of a task, from 1": (
        "DT218",
        ARRAY.format("1-9", 'sed -n "${SLURM_ARRAY_TASK_ID}p" a'),
        [],
    ),
    "line of a task, and one more": (
        "DT218",
        ARRAY.format("0-9", 'sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" a'),
        [],
    ),
    "loop from 1 to all": (
        "DT219",
        TWO_NODES + HOST.format("i in $(seq 1 $SLURM_NNODES)", "${nodes[$i]}"),
        ["5 error"],
    ),
    "loop from 0 to all": (
        "DT219",
        TWO_NODES + HOST.format("((i=0; i<=${#nodes[@]}; i++))", "${nodes[i]}"),
        ["5 error"],
    ),
    "loop to a number": (
        "DT219",
        TWO_NODES + HOST.format("i in $(seq 1 2)", "${nodes[$i]}"),
        ["5 error"],
    ),
    "loop over the workers": (
        "DT219",
        TWO_NODES
        + HOST.format("((i = 1; i <= SLURM_NNODES - 1; i++))", "${nodes[$i]}"),
        [],
    ),
    "loop over the workers, counted before": (
        "DT219",
        TWO_NODES
        + "n=$((SLURM_NNODES - 1))\n"
        + HOST.format("i in $(seq 1 $n)", "${nodes[$i]}"),
        [],
    ),
    "loop below all": (
        "DT219",
        TWO_NODES + HOST.format("((i=0; i<SLURM_NNODES; i++))", "${nodes[$i]}"),
        [],
    ),
    "element before": (
        "DT219",
        TWO_NODES + HOST.format("i in $(seq 1 $SLURM_NNODES)", "${nodes[$((i-1))]}"),
        [],
    ),
    "other list": (
        "DT219",
        TWO_NODES
        + "nodes=(none a b)\nfor i in $(seq 1 2); do\n  ./a ${nodes[$i]}\ndone\n",
        [],
    ),
    "task beyond a list": (
        "DT219",
        ARRAY.format("1-3", "lr=(1 2 3)\necho ${lr[$SLURM_ARRAY_TASK_ID]}"),
        ["2 error"],
    ),
    "task beyond a list, in a variable": (
        "DT219",
        ARRAY.format("0-3", "lr=(1 2 3)\ni=$SLURM_ARRAY_TASK_ID\necho ${lr[i]}"),
        ["2 error"],
    ),
    "tasks of a list": (
        "DT219",
        ARRAY.format("0-2", "lr=(1 2 3)\necho ${lr[$SLURM_ARRAY_TASK_ID]}"),
        [],
    ),
    "tasks of a list that grows": (
        "DT219",
        ARRAY.format("1-3", "lr=(1 2 3)\nlr+=(4)\necho ${lr[$SLURM_ARRAY_TASK_ID]}"),
        [],
    ),
    "tasks of a list of files": (
        "DT219",
        ARRAY.format("1-3", "f=(*.yaml)\necho ${f[$SLURM_ARRAY_TASK_ID]}"),
        [],
    ),
    "loopback": (
        "DT215",
        FOUR_TASKS + "export NCCL_SOCKET_IFNAME=lo\nsrun -K python a.py\n",
        ["4 error"],
    ),
    "loopback in each task": (
        "DT215",
        FOUR_TASKS + "srun -K bash -c 'export GLOO_SOCKET_IFNAME=lo; python a.py'\n",
        ["4 error"],
    ),
    "loopback on one node": (
        "DT215",
        ONE_NODE + "export NCCL_SOCKET_IFNAME=lo\n" + TORCHRUN,
        [],
    ),
    "all but loopback": (
        "DT215",
        FOUR_TASKS + "export NCCL_SOCKET_IFNAME=^lo,docker\nsrun -K python a.py\n",
        [],
    ),
    "loopback in a branch": (
        "DT215",
        FOUR_TASKS + "if [ $N = 1 ]; then\n  export NCCL_SOCKET_IFNAME=lo\nfi\n"
        "srun -K python a.py\n",
        [],
    ),
    "name of another tool": ("DT216", "export NCCL_SOCKET_IFACE=ib0\n", ["1 warning"]),
    "letters that are swapped": ("DT216", "export NCLL_DEBUG=INFO\n", ["1 warning"]),
    "name of Gloo": ("DT216", "export GLOO_SOCKET_IFACE=ib0\n", ["1 warning"]),
    "name in a list of srun": (
        "DT216",
        ONE_NODE + "srun --export=ALL,NCCL_SOCKET_IFNAMES=ib0 python a.py\n",
        ["4 warning"],
    ),
    "name that NCCL reads": ("DT216", "export NCCL_NET_GDR_LEVEL=3\n", []),
    "name of PyTorch": ("DT216", "export TORCH_NCCL_BLOCKING_WAIT=1\n", []),
    "name that nothing resembles": ("DT216", "export NCCL_FOO=1\n", []),
    "variable of the script": (
        "DT216",
        "NCCL_DEBUGS=$HOME/log\nmkdir $NCCL_DEBUGS\n",
        [],
    ),
    "InfiniBand off": (
        "DT217",
        FOUR_TASKS + "#SBATCH -C ib\nexport NCCL_IB_DISABLE=1\nsrun -K python a.py\n",
        ["5 note"],
    ),
    "InfiniBand off beside its settings": (
        "DT217",
        FOUR_TASKS + "export NCCL_IB_DISABLE=1\nexport NCCL_SOCKET_IFNAME=ib0\n"
        "srun -K python a.py\n",
        ["4 warning"],
    ),
    "InfiniBand off on one node": (
        "DT217",
        ONE_NODE + "export NCCL_IB_DISABLE=1\n" + TORCHRUN,
        [],
    ),
    "InfiniBand off on another fabric": (
        "DT217",
        FOUR_TASKS + "export NCCL_IB_DISABLE=1 FI_PROVIDER=efa\nsrun -K python a.py\n",
        [],
    ),
    "InfiniBand on": (
        "DT217",
        FOUR_TASKS + "export NCCL_IB_DISABLE=0\nsrun -K python a.py\n",
        [],
    ),
    "NVLink off": (
        "DT217",
        ONE_NODE.replace("gpu:4", "gpu:h100:4") + "export NCCL_P2P_DISABLE=1\n",
        ["4 warning"],
    ),
    "connection of other GPUs off": (
        "DT217",
        ONE_NODE + "export NCCL_P2P_DISABLE=1\n" + TORCHRUN,
        ["4 note"],
    ),
    "one GPU": (
        "DT217",
        ONE_NODE.replace("gpu:4", "gpu:h100:1") + "export NCCL_P2P_DISABLE=1\n",
        [],
    ),
    "device of the task, and one GPU": (
        "DT111",
        SINGLE.format("python a.py --device cuda:$SLURM_LOCALID"),
        ["5 error"],
    ),
    "first device, and one GPU": (
        "DT111",
        SINGLE.format("python a.py --device cuda:0"),
        [],
    ),
    "device of the task, and all GPUs": (
        "DT111",
        SINGLE.replace("single:1", "none").format("python a.py cuda:$SLURM_LOCALID"),
        [],
    ),
    "threads of the node": (
        "DT405",
        FOUR_TASKS + "export OMP_NUM_THREADS=$(nproc)\nsrun -K python a.py\n",
        ["4 warning"],
    ),
    "threads of the node, for torchrun": (
        "DT405",
        ONE_NODE + "export OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE\n" + TORCHRUN,
        ["4 warning"],
    ),
    "threads of the node, for one rank": (
        "DT405",
        ONE_NODE + "export OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE\npython a.py\n",
        [],
    ),
    "threads of each rank": (
        "DT405",
        ONE_NODE + "export OMP_NUM_THREADS=$((SLURM_CPUS_ON_NODE / 4))\n" + TORCHRUN,
        [],
    ),
    "size of the run, as an argument": (
        "DT118",
        FOUR_TASKS + SIZE.format("--distributed-world-size 16 --port 1"),
        ["4 warning"],
    ),
    "size of the run, with =": (
        "DT118",
        FOUR_TASKS + "srun -K python a.py --world_size=4\n",
        ["4 warning"],
    ),
    "right size of the run": (
        "DT118",
        FOUR_TASKS + SIZE.format("--distributed-world-size 8"),
        [],
    ),
    "program that starts its ranks": (
        "DT118",
        TWO_NODES + SIZE.format("--distributed-world-size 16"),
        [],
    ),
    "program that counts nodes": (
        "DT118",
        FOUR_TASKS + "srun -K python a.py --world-size 2 --rank $N\n"
        "srun -K python a.py --world-size 2 --multiprocessing-distributed\n",
        [],
    ),
    "field 0": ("DT218", "a=$(echo $N | cut -d, -f0)\n", ["1 error"]),
    "field 1": ("DT218", "a=$(echo $N | cut -d, -f1-)\n", []),
    "while that goes to all": (
        "DT219",
        TWO_NODES + LIST + "i=1\nwhile [ $i -le $SLURM_NNODES ]; do\n"
        "  ssh -n ${nodes[$i]} ./a &\n  i=$((i + 1))\ndone\n",
        ["6 error"],
    ),
    "loop of braces": (
        "DT219",
        TWO_NODES + HOST.format("i in {1..2}", "${nodes[$i]}"),
        ["5 error"],
    ),
    "loopback in an option": (
        "DT215",
        FOUR_TASKS + "srun -K --export=ALL,NCCL_SOCKET_IFNAME=lo python a.py\n",
        ["4 error"],
    ),
    "name that NCCL never had": ("DT216", "export NCCL_IFNAME=ib0\n", ["1 warning"]),
    "several wrong names": (
        "DT216",
        "export NCCL_IB_DISABLED=1 NCCL_DEBUG_LEVEL=INFO NCCL_IB_TIME_OUT=22\n",
        ["1 warning", "1 warning", "1 warning"],
    ),
    "one GPU per task, by its type": (
        "DT111",
        FOUR_TASKS + "#SBATCH --gpus-per-task=a100:1\n"
        "srun -K bash -c 'python a.py cuda:$SLURM_LOCALID'\n",
        ["5 error"],
    ),
    "GPUs by a map": (
        "DT111",
        SINGLE.replace("single:1", "map_gpu:0,1").format(
            "python a cuda:$SLURM_LOCALID"
        ),
        ["5 error"],
    ),
    "size of the run, of Hydra": (
        "DT118",
        FOUR_TASKS + "srun -K python a.py task.distributed_world_size=16\n",
        ["4 warning"],
    ),
    "one number for all hosts of pdsh": (
        "DT202",
        PDSH.format("n[1-4]", "0"),
        ["1 error"],
    ),
    "number that pdsh replaces": ("DT202", PDSH.format("n[1-4]", "%n"), []),
    "one host of pdsh": ("DT202", PDSH.format("n2", "1"), []),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_list_or_variable_is_told(code, text, told):
    assert of_code(text, code) == told


@pytest.mark.parametrize(
    ("text", "code", "cure"),
    [
        (CASES["loop from 1 to all"][1], "DT219", "in $(seq 0 $((SLURM_NNODES - 1)))"),
        (CASES["loop from 0 to all"][1], "DT219", "$(seq 0 $((${#nodes[@]} - 1)))"),
        (CASES["task beyond a list"][1], "DT219", "an array of 0-2"),
        (CASES["threads of the node"][1], "DT405", "=$(($(nproc) / 4))"),
        (
            CASES["threads of the node"][1].replace("\nexp", "\n#SBATCH -c 4\nexp"),
            "DT405",
            "=$SLURM_CPUS_PER_TASK",
        ),
        (CASES["field 0"][1], "DT218", "cut -f1"),
        (
            CASES["while that goes to all"][1],
            "DT219",
            "i=0, and while [ $i -lt $SLURM_NNODES ]",
        ),
        (
            CASES["size of the run, of Hydra"][1],
            "DT118",
            "task.distributed_world_size=$SLURM_NTASKS",
        ),
        (
            CASES["threads of the node, for torchrun"][1],
            "DT405",
            "OMP_NUM_THREADS=$((SLURM_CPUS_ON_NODE / 4))",
        ),
        (CASES["name of another tool"][1], "DT216", "NCCL_SOCKET_IFNAME"),
    ],
)
def test_cure_has_the_names_of_the_script(text, code, cure):
    (found,) = (each for each in lint(text) if each.rule.code == code)
    assert found.cure.endswith(cure)


def test_pdsh_gets_its_own_number_of_the_host():
    text = CASES["one number for all hosts of pdsh"][1]
    (found,) = (each for each in lint(text) if each.rule.code == "DT202")
    assert found.cure.startswith("--node-rank=%n")


def test_address_of_an_empty_line_gives_no_other_error():
    text = TWO_NODES + "head=$(scontrol show hostnames $SLURM_JOB_NODELIST|sed -n 0p)\n"
    text += "srun -K " + C10D.format(endpoint="$head:29512") + "\n"
    assert [each.rule.code for each in lint(text) if each.is_error] == ["DT218"]
