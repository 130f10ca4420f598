"""Ports above 65535 (DT210), by number and by formula."""

from __future__ import annotations

import pytest

from tests.lint.forms import C10D, FIRST, FOUR_TASKS, TWO_HOSTS, TWO_NODES, of_code
from workshop.lint.largest import largest_value
from workshop.lint.linting import lint

ADDRESS = f"export MASTER_ADDR={FIRST}\n"
PORT = FOUR_TASKS + ADDRESS + "export MASTER_PORT={}\nsrun -K python a.py\n"
LINE = "torchrun --nnodes=2 --node-rank=1 --master-addr=node01 {} a.py"


def known(name: str) -> int | None:
    return {"$GPUS": 4}.get(name)


@pytest.mark.parametrize(
    ("formula", "largest"),
    [
        ("29500", 29500),
        ("70000", 70000),
        ("$((10000 + SLURM_JOB_ID % 100000))", 109999),
        ("$((10000 + $SLURM_JOB_ID % 20000))", 29999),
        ("$(( 10000 + (${SLURM_JOBID} % 50000) ))", 59999),
        ("$((${PBS_JOBID%%.*} % 65536 + 1024))", 66559),
        ("$((40000 + RANDOM))", 72767),
        ("$((RANDOM % 50000 + 10000))", 42767),
        ("$((20000 + RANDOM / 2))", 36383),
        ("$((30000 - SLURM_JOB_ID % 1000))", 30000),
        ("$((20000 + GPUS * 10))", 20040),
        ("$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 4))", 19999),
        ("$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 5))", 109999),
        ("$(expr 10000 + $(echo $SLURM_JOBID | tail -c 5))", 19999),
        ("$((10000 + ${SLURM_JOB_ID: -5}))", 109999),
        ("$((10000 + 10#${SLURM_JOB_ID: -4}))", 19999),
        ("$SLURM_JOB_ID", float("inf")),
        ("$((SLURM_JOB_ID + 10000))", float("inf")),
        ("$((20000 + SLURM_JOB_ID % 40000 + SLURM_ARRAY_TASK_ID))", None),
        ("$((BASE + SLURM_JOB_ID % 10000))", None),
        ("$((20000 + (SLURM_JOB_ID * 11 + ${SLURM_RESTART_COUNT:-0}) % 10000))", None),
        ("$(python free_port.py)", None),
        ("$1", None),
        ("$((29500or 1))", None),
        ("$((" + "9" * 5000 + "))", None),
        ("$((" + "(" * 5000 + "))", None),
    ],
)
def test_largest_value_of_a_formula(formula, largest):
    assert largest_value(formula, known) == largest


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PORT.format("$((10000 + SLURM_JOB_ID % 100000))"), ["5 error"]),
        (PORT.format("$((10000 + SLURM_JOB_ID % 50000))"), []),
        (PORT.format("70000"), ["5 error"]),
        (LINE.format("--master-port=70000"), ["1 error"]),
        (LINE.format("--master_port 65535"), []),
        ("torchrun --rdzv-backend=c10d --rdzv-endpoint=a:65536 b.py", ["1 error"]),
        (
            TWO_NODES + "srun -K " + C10D.format(endpoint="$H:$((60000 + RANDOM))"),
            ["4 error"],
        ),
        (
            "PORT=70000\n" + LINE.format("--master-port=$PORT"),
            ["1 error"],
        ),
    ],
)
def test_port_that_is_too_large_is_told_once(text, told):
    assert of_code(text, "DT210") == told


def test_largest_number_and_the_end_of_ports_are_told():
    text = PORT.format("$((10000 + SLURM_JOB_ID % 100000))")
    (found,) = (each for each in lint(text) if each.rule.code == "DT210")
    assert "goes up to 109999" in found.what and "65535" in found.what


def test_port_in_the_quotes_of_pbsdsh_is_computed_there():
    text = TWO_HOSTS.format(ranks=1) + (
        "pbsdsh -- bash -lc 'torchrun --nnodes=2 --rdzv-backend=c10d "
        "--rdzv-id=$PBS_JOBID --rdzv-endpoint=node01:29512 a.py'\n"
    )
    (cure,) = (each.cure for each in lint(text) if each.rule.code == "DT207")
    assert cure.startswith("$((20000 + ${PBS_JOBID") and cure.endswith("of 29512")
