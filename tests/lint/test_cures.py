"""What a finding offers instead must be right for that script."""

from __future__ import annotations

import json
import re

import pytest

from tests.lint.forms import C10D, TWO_HOSTS, TWO_NODES, of_code
from workshop.lint.linting import lint
from workshop.lint.report import render

HEAD = "#!/bin/bash\n#SBATCH --ntasks-per-node=1\n"
MANY = C10D.format(endpoint="node01:29512").replace("nnodes=2", "nnodes={}") + "\n"
STATIC = "torchrun --nnodes=1 --nproc-per-node=4 --master-port=29512 train.py\n"


def cure(text: str, code: str) -> str:
    (found,) = (each.cure for each in lint(text) if each.rule.code == code)
    return found


@pytest.mark.parametrize(
    ("text", "standalone"),
    [
        (HEAD + "srun " + MANY.format("$SLURM_NNODES"), False),
        (HEAD + "srun " + MANY.format("4"), False),
        (HEAD + "#SBATCH --nodes=1-4\nsrun " + STATIC, False),
        (HEAD + "srun $MORE " + STATIC.replace("--nnodes=1", "$OPTS"), False),
        (
            HEAD
            + "accelerate launch --num_machines 1 --main_process_port 29512 a.py\n",
            False,
        ),
        (HEAD + "#SBATCH --nodes=1\n" + STATIC, True),
        (HEAD + STATIC, True),
    ],
)
def test_standalone_is_offered_for_one_node_alone(text, standalone):
    assert (cure(text, "DT207") == "--standalone") == standalone


def test_cores_of_all_ranks_are_for_the_one_launcher():
    head = TWO_NODES.replace("node=1", "node=4") + "#SBATCH --cpus-per-task=8\n"
    text = head + "srun -c 8 " + C10D.format(endpoint="node01:1")
    assert cure(text, "DT101").endswith("--cpus-per-task=32")


def test_step_with_a_number_of_its_own_gets_that_number():
    text = TWO_NODES.replace("nodes=2", "nodes=4")
    text += "srun -K -N 2 -n 2 " + MANY.format("$SLURM_JOB_NUM_NODES")
    assert cure(text, "DT106").startswith("--nnodes=2")


def test_directive_that_is_a_comment_leaves_one_node():
    text = HEAD + "# SBATCH --nodes=4\nsrun -K " + MANY.format("4")
    assert of_code(text, "DT106") == ["4 error"]
    assert of_code(text.replace("# SBATCH", "#SBATCH"), "DT106") == []


def test_launch_is_waited_for_by_its_own_number():
    text = TWO_NODES + "srun -K python train.py &\ntail -f log | grep loss &\nwait\n"
    assert cure(text, "DT315") == 'pid=$! after line 4, and here: wait "$pid"'
    ends = text.replace("tail -f log", "sleep 60")
    assert cure(ends, "DT305") == 'pid=$! after line 4, and here: wait "$pid"'


@pytest.mark.parametrize(
    ("option", "words"),
    [("-I", "all networks"), ("-i", "127.0.1.1")],
)
def test_address_of_hostname_is_told_as_the_option_prints_it(option, words):
    text = TWO_NODES + f"export MASTER_ADDR=$(hostname {option})\nsrun -K python a.py\n"
    (what,) = (each.what for each in lint(text) if each.rule.code == "DT205")
    assert words in what


def test_each_mpi_is_named_with_its_option():
    text = TWO_HOSTS.format(ranks=4) + "mpirun -np 8 " + C10D.format(endpoint="a:1")
    offered = cure(text, "DT101")
    assert "ppr:1:node with Open MPI" in offered
    assert "--ppn 1 with MPICH" in offered


def test_errors_come_before_warnings_and_json_keeps_the_lines():
    text = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH -c 8\n"
    text += "export MASTER_PORT=29512\nsrun python a.py\n" + MANY.format(2)
    found = lint(text, "a.sbatch")
    lines = [each.line for each in found]
    shown = [each.is_error for each in found]
    assert lines == sorted(lines) and shown != sorted(shown, reverse=True)
    told = re.findall(
        r"^a.sbatch:\d+: (\w+)", render(found, ["a.sbatch"], "text"), re.M
    )
    assert told == sorted(told) and len(told) == len(found)
    kept = json.loads(render(found, ["a.sbatch"], "json"))["findings"]
    assert [each["line"] for each in kept] == lines


def test_fewer_data_workers_are_offered_too():
    text = (
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH -c 8\nexport OMP_NUM_THREADS=1\n"
        "srun -c 8 torchrun --standalone --nproc-per-node=4 a.py --num-workers 4\n"
    )
    assert cure(text, "DT112").endswith("or 1 data worker for each rank")
