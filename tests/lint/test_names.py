"""Names of variables that nothing sets: DT122."""

from __future__ import annotations

import pytest

from tests.lint.forms import C10D, PORT, TWO_NODES, of_code

PROT = C10D.format(endpoint="node01:$MASTER_PROT") + "\n"
CASES: dict[str, tuple[str, list[str]]] = {
    "two letters swapped": (TWO_NODES + PORT + "srun -K " + PROT, ["5 error"]),
    "a letter too few": (
        TWO_NODES
        + "srun -K "
        + C10D.format(endpoint="a:1").replace("nnodes=2", "nnodes=$SLURM_NNODE"),
        ["4 error"],
    ),
    "in the shell of each task": (
        TWO_NODES + PORT + f"srun -K bash -c '{PROT}'\n",
        ["5 error"],
    ),
    "a file may set it": (
        TWO_NODES + "source env.sh\n" + PORT + "srun -K " + PROT,
        ["6 warning"],
    ),
    "a module may set it": (
        TWO_NODES + "module load x\n" + PORT + "srun -K " + PROT,
        ["6 warning"],
    ),
    "an environment of Python sets nothing": (
        TWO_NODES + "source venv/bin/activate\n" + PORT + "srun -K " + PROT,
        ["6 error"],
    ),
    "the known name is used, and another one is set": (
        TWO_NODES
        + "MASTER_PROT=29512\nsrun -K "
        + C10D.format(endpoint="node01:$MASTER_PORT"),
        ["5 warning"],
    ),
    "name that is set": (
        TWO_NODES
        + "MASTER_PROT=1\n"
        + PORT
        + "srun -K "
        + PROT
        + "echo $MASTER_PORT\n",
        [],
    ),
    "similar name that is used, too": (
        TWO_NODES
        + "NODES=2\necho $NODES\nsrun -K "
        + C10D.format(endpoint="a:1").replace("nnodes=2", "nnodes=$NNODES"),
        [],
    ),
    "name that people set when they submit": (
        TWO_NODES
        + "NODES=2\nsrun -K "
        + C10D.format(endpoint="a:1").replace("nnodes=2", "nnodes=$NNODES"),
        ["5 warning"],
    ),
    "names that differ by a number": (
        TWO_NODES + "node1=a\nsrun -K " + C10D.format(endpoint="$node2:1"),
        [],
    ),
    "name that read sets": (
        TWO_NODES + PORT + "read -r MASTER_PROT < file\nsrun -K " + PROT,
        [],
    ),
    "name that printf sets": (
        TWO_NODES + PORT + "printf -v MASTER_PROT 29512\nsrun -K " + PROT,
        [],
    ),
    "name with a default": (
        TWO_NODES
        + PORT
        + "srun -K "
        + PROT.replace("$MASTER_PROT", "${MASTER_PROT:-9}"),
        [],
    ),
    "name of the submitting shell that is like no other": (
        TWO_NODES + PORT + "srun -K " + C10D.format(endpoint="$LEADER:$MASTER_PORT"),
        [],
    ),
}


@pytest.mark.parametrize(("text", "told"), CASES.values(), ids=CASES.keys())
def test_misspelt_name_is_told(text, told):
    assert of_code(text, "DT122") == told
