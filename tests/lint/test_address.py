"""The one node whose address all ranks use: DT211 to DT213."""

from __future__ import annotations

import pytest

from tests.lint.forms import C10D, FIRST, FOUR_TASKS, PORT, STATIC, TWO_NODES, of_code

LAST = FIRST.replace("head", "tail")
ALL = '$(scontrol show hostnames "$SLURM_JOB_NODELIST")'
NUMBERED = f"srun -K bash -c '{STATIC}'\n"
RANKS = (
    "srun -K bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS python train.py{}'\n"
)
CASES: dict[str, tuple[str, str, list[str]]] = {
    "last line of the list": (
        "DT211",
        TWO_NODES + PORT + f"export MASTER_ADDR={LAST}\n" + NUMBERED,
        ["5 error"],
    ),
    "last element of the list": (
        "DT211",
        TWO_NODES + PORT + f"N=({ALL})\nexport MASTER_ADDR=${{N[-1]}}\n" + NUMBERED,
        ["6 error"],
    ),
    "last element of a list that mapfile reads": (
        "DT211",
        TWO_NODES
        + PORT
        + "mapfile -t N < <(scontrol show hostnames)\nexport MASTER_ADDR=${N[-1]}\n"
        + NUMBERED,
        ["6 error"],
    ),
    "last element of the list, by its number": (
        "DT211",
        TWO_NODES
        + PORT
        + f"N=({ALL})\nexport MASTER_ADDR=${{N[$((SLURM_NNODES - 1))]}}\n"
        + NUMBERED,
        ["6 error"],
    ),
    "last node of ranks that Slurm numbers": (
        "DT211",
        FOUR_TASKS + PORT + f"export MASTER_ADDR={LAST}\n" + RANKS.format(""),
        ["5 error"],
    ),
    "last node of a c10d rendezvous": (
        "DT211",
        TWO_NODES + f"head={LAST}\nsrun -K " + C10D.format(endpoint="$head:29512"),
        [],
    ),
    "last line of the list turned over": (
        "DT211",
        TWO_NODES
        + PORT
        + "export MASTER_ADDR=$(scontrol show hostnames | sort -r | tail -n 1)\n"
        + NUMBERED,
        [],
    ),
    "nodes that are numbered from the last": (
        "DT211",
        TWO_NODES
        + PORT
        + f"export MASTER_ADDR={LAST}\n"
        + NUMBERED.replace("$SLURM_NODEID", "$((1 - SLURM_NODEID))"),
        [],
    ),
    "first node": (
        "DT211",
        TWO_NODES + PORT + f"export MASTER_ADDR={FIRST}\n" + NUMBERED,
        [],
    ),
    "last line of something else": (
        "DT211",
        TWO_NODES + PORT + "export MASTER_ADDR=$(cat head | tail -n 1)\n" + NUMBERED,
        [],
    ),
    "all nodes as the endpoint": (
        "DT212",
        TWO_NODES + f"head={ALL}\nsrun -K " + C10D.format(endpoint="$head:29512"),
        ["4 error"],
    ),
    "all nodes as the address of ranks": (
        "DT212",
        FOUR_TASKS + f"export MASTER_ADDR={ALL}\n" + RANKS.format(""),
        ["4 error"],
    ),
    "list of Slurm as it is": (
        "DT212",
        FOUR_TASKS + "export MASTER_ADDR=$SLURM_JOB_NODELIST\n" + RANKS.format(""),
        ["4 error"],
    ),
    "names of all tasks' nodes": (
        "DT212",
        FOUR_TASKS + "export MASTER_ADDR=$(srun hostname)\n" + RANKS.format(""),
        ["4 error"],
    ),
    "first word of all nodes": (
        "DT212",
        TWO_NODES + f"head={ALL}\nsrun -K " + C10D.format(endpoint="${head%%\n*}:29"),
        [],
    ),
    "all nodes, and then the first": (
        "DT212",
        TWO_NODES
        + f"head={ALL}\nhead=${{head%% *}}\nsrun -K "
        + C10D.format(endpoint="$head:29512"),
        [],
    ),
    "array, whose name is its first element": (
        "DT212",
        TWO_NODES + f"head=({ALL})\nsrun -K " + C10D.format(endpoint="$head:29512"),
        [],
    ),
    "all nodes of one": (
        "DT212",
        TWO_NODES.replace("nodes=2", "nodes=1")
        + f"head={ALL}\nsrun -K "
        + C10D.format(endpoint="$head:29512"),
        [],
    ),
    "ranks without an address": ("DT213", FOUR_TASKS + RANKS.format(""), ["4 warning"]),
    "ranks that meet at a file": (
        "DT213",
        FOUR_TASKS + RANKS.format(" --init-method file:///shared/a"),
        [],
    ),
    "ranks whose file sets the address": (
        "DT213",
        FOUR_TASKS + "source env.sh\n" + RANKS.format(""),
        [],
    ),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_address_that_is_not_of_one_first_node_is_told(code, text, told):
    assert of_code(text, code) == told
