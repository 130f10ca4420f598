"""What a finding offers instead must be right for that script."""

from __future__ import annotations

import json
import re

import pytest

from tests.lint.forms import C10D, ONE_NODE, TWO_HOSTS, TWO_NODES, of_code
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


SERVER = ONE_NODE + "python server.py &\npid=$!\nsrun -K python a.py --save\n{}wait\n"
TWO_LEFT = ONE_NODE + (
    "python server.py &\npid=$!\nsrun -K python a.py --save &\n{}\nwait\n"
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SERVER.format('kill "$pid"\n'), []),
        (SERVER.format("kill %1\n"), []),
        (SERVER.format("kill $(jobs -p)\n"), []),
        (SERVER.format("pkill -f server\n"), []),
        (SERVER.format(""), ["7 warning"]),
        (SERVER.format("kill -0 $pid\n"), ["8 warning"]),
        (SERVER.format("kill -USR1 $pid\n"), ["8 warning"]),
        (TWO_LEFT.format("train=$!; kill $pid"), ["8 warning"]),
        (TWO_LEFT.format("train=$!; kill $pid $train"), []),
    ],
)
def test_process_that_the_job_kills_needs_no_status(text, told):
    assert of_code(text, "DT305") == told


def test_status_of_the_training_is_lost_behind_the_end_of_a_server():
    text = SERVER.format("kill $pid\n")
    (found,) = (each for each in lint(text) if each.rule.code == "DT304")
    assert "`wait`, not of `srun`" in found.what
    assert (
        of_code(text.replace("python server", "set -e\npython server"), "DT304") == []
    )


def test_launch_beside_a_killed_server_is_waited_for_alone():
    text = TWO_LEFT.format("kill $pid")
    assert cure(text, "DT305") == "wait $!"


TORQUE = "#!/bin/bash\n#PBS -l nodes=2:ppn=8\ncd $PBS_O_WORKDIR\n"


def test_torque_has_no_pbs_tmrsh():
    text = TORQUE + "pbsdsh -u $PBS_O_WORKDIR/run.sh\n"
    assert cure(text, "DT310").startswith("ssh HOST")
    assert "pbs_tmrsh" in cure(TWO_HOSTS.format(ranks=1) + "pbsdsh ./run.sh\n", "DT310")


def test_number_of_launchers_under_pbs_is_told_without_slurm():
    text = TWO_HOSTS.format(ranks=1) + "mpiexec -n 2 --ppn 1 " + MANY.format(3)
    (found,) = (each for each in lint(text) if each.rule.code == "DT106")
    assert found.what.startswith("mpiexec starts 2 torchruns")
    assert found.cure == "--nnodes=2, or start 3 torchruns"


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        ("mpiexec -n 8 --ppn 4 ", "mpiexec -n 2 --ppn 1 ..."),
        ("mpirun -np 8 -npernode 4 ", "mpirun -np 2 -npernode 1 ..."),
        ("mpirun -np 8 --map-by ppr:4:node ", "mpirun -np 2 --map-by ppr:1:node ..."),
    ],
)
def test_mpi_gets_both_numbers_in_its_own_words(options, offered):
    text = TWO_HOSTS.format(ranks=4) + options + C10D.format(endpoint="a:1")
    assert cure(text, "DT101") == offered


HOSTNAME_I = TWO_NODES + "head=$(hostname -I)\nsrun -K " + C10D + "\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HOSTNAME_I.format(endpoint='"$head:29512"'), ["4 error"]),
        (HOSTNAME_I.format(endpoint="${head}:29512"), ["4 error"]),
        (HOSTNAME_I.format(endpoint="${head%% *}:29512"), ["4 warning"]),
        (
            HOSTNAME_I.replace("-I)", "-i)").format(endpoint="$head:29512"),
            ["4 warning"],
        ),
        (
            HOSTNAME_I.replace("-I)", "-I)\nhead=${{head%% *}}").format(
                endpoint="$head:29512"
            ),
            [],
        ),
        (
            TWO_NODES + "export MASTER_ADDR=$(hostname -I)\nsrun -K python a.py\n",
            ["4 error"],
        ),
    ],
)
def test_blank_of_hostname_is_an_error_where_it_is_used(text, told):
    assert of_code(text, "DT205") == told


IN_QUOTES = TWO_NODES + "srun -K bash -c '{}" + C10D + "'\n"


def test_own_name_is_replaced_where_it_is_used():
    text = IN_QUOTES.format("", endpoint="$(hostname -s):29512")
    assert cure(text, "DT206").endswith("and $MASTER_ADDR in place of $(hostname -s)")
    text = IN_QUOTES.format("export H=$(hostname); ", endpoint="$H:29512")
    assert cure(text, "DT206").startswith("export H=$(scontrol")
    assert cure(text, "DT206").endswith("and not in the tasks)")


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        (
            'srun -K bash -c "$RUN a.py"',
            r"\$SLURM_NODEID, which the shell of each task",
        ),
        (
            "srun -K $RUN a.py",
            r'set it in each task: \$SLURM_NODEID here, and srun bash -c "$RUN ..."',
        ),
    ],
)
def test_number_in_a_launch_line_gets_a_backslash(command, offered):
    text = TWO_NODES + (
        'RUN="torchrun --nnodes=2 --node-rank=$SLURM_NODEID --master-addr=node01"\n'
    )
    cures = [each.cure for each in lint(text + command) if each.rule.code == "DT107"]
    assert cures[0].startswith(offered)


def test_branches_of_a_node_belong_into_the_task():
    run = "torchrun --nnodes=2 --node-rank={} --master-addr=$MASTER_ADDR a.py\n"
    text = TWO_NODES + 'if [ "$SLURM_NODEID" -eq 0 ]; then\n  ' + run.format(0)
    text += "else\n  " + run.format(1) + "fi\n"
    (found,) = (each for each in lint(text) if each.rule.code == "DT103")
    assert "`SLURM_NODEID` is always 0" in found.what
    assert "inside srun bash -c" in found.cure
    other = text.replace("$SLURM_NODEID", "$NAME")
    assert len([each for each in lint(other) if each.rule.code == "DT103"]) == 2


CHUNKS = (
    "#!/bin/bash\n#PBS -l select={}\ncd $PBS_O_WORKDIR\nhead=$(hostname)\n"
    "mpiexec -n 2 --ppn 1 torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d "
    "--rdzv-id=$PBS_JOBID --rdzv-endpoint=$head:29512 a.py\n"
)


@pytest.mark.parametrize(
    ("select", "offered"),
    [
        ("8:ncpus=8:ngpus=1:mem=10gb", "2:ncpus=32:ngpus=4:mem=40gb and #PBS -l place"),
        ("4:ncpus=16:ngpus=2", "2:ncpus=32:ngpus=4 and #PBS -l place=scatter"),
    ],
)
def test_small_chunks_are_joined(select, offered):
    assert cure(CHUNKS.format(select), "DT010").startswith(f"#PBS -l select={offered}")


@pytest.mark.parametrize(
    ("select", "told"),
    [
        ("2:ncpus=64:ngpus=4:mem=400gb", []),
        ("2:ncpus=32:ngpus=4", ["2 warning"]),
        ("2:ncpus=64:ngpus=1", ["2 warning"]),
    ],
)
def test_chunk_that_fills_a_node_needs_no_scatter(select, told):
    assert of_code(CHUNKS.format(select), "DT010") == told


IN_DOUBLE = TWO_NODES + 'srun -K bash -c "' + C10D + '"\n'


def test_backslash_leaves_a_name_to_each_task():
    text = IN_DOUBLE.format(endpoint="\\$(hostname):29512")
    assert cure(text, "DT206").endswith("in place of $(hostname)")
    assert of_code(IN_DOUBLE.format(endpoint="$(hostname):29512"), "DT206") == []
    lost = "head=$(hostname)\nsrun"
    text = IN_DOUBLE.format(endpoint="\\$head:29512").replace("srun", lost)
    assert of_code(text, "DT201") == ["5 error"]
    text = IN_DOUBLE.format(endpoint="\\$head:$head").replace("srun", "export " + lost)
    assert of_code(text, "DT201") == []


def test_pbsdsh_of_torque_may_start_one_task_on_each_host():
    text = "#!/bin/bash\n#PBS -l nodes=2:ppn=4\ncd $PBS_O_WORKDIR\n"
    text += "pbsdsh {}bash -lc '" + C10D.format(endpoint="node01:29512") + "'\n"
    assert of_code(text.replace("{}", "-u "), "DT101") == []
    assert of_code(text.replace("{}", ""), "DT101") == ["4 error"]
