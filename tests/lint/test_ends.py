"""How a job ends: DT314 and DT315, and cures that bash must be able to run."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.lint.forms import C10D, ONE_NODE, TORCHRUN, TWO_HOSTS, TWO_NODES, of_code
from workshop.lint.linting import lint

LOOP = ONE_NODE + "for i in 1 2 3; do\n  {}\n  sleep 60\ndone\n"
TRAIN = "srun python train.py --resume"
MONITOR = ONE_NODE + "{} &\n" + TRAIN + " &\nwait\n"
SIGNAL = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --signal=B:USR1@60\n"
CASES: dict[str, tuple[str, str, list[str]]] = {
    "tries that end with a sleep": (
        "DT314",
        LOOP.format(f"{TRAIN} && break"),
        ["5 warning"],
    ),
    "tries in an if": (
        "DT314",
        LOOP.format(f"if {TRAIN}; then break; fi"),
        ["5 warning"],
    ),
    "tries of a while that counts": (
        "DT314",
        ONE_NODE + f"n=0\nwhile [ $n -lt 3 ]; do\n  {TRAIN} && break\n"
        "  n=$((n + 1))\ndone\n",
        ["6 warning"],
    ),
    "tries, and a message at the end": (
        "DT314",
        LOOP.format(f"{TRAIN} && break") + "echo done\n",
        ["5 warning"],
    ),
    "tries whose last command is the launch": (
        "DT314",
        ONE_NODE + f"for i in 1 2 3; do\n  {TRAIN} && break\ndone\n",
        [],
    ),
    "tries without an end": (
        "DT314",
        ONE_NODE + f"while true; do\n  {TRAIN} && break\n  sleep 60\ndone\n",
        [],
    ),
    "tries that keep a status": (
        "DT314",
        ONE_NODE
        + "status=1\n"
        + LOOP.format(f"{TRAIN} && {{ status=0; break; }}").removeprefix(ONE_NODE)
        + "exit $status\n",
        [],
    ),
    "tries, and a look at what they left": (
        "DT314",
        LOOP.format(f"{TRAIN} && break") + "[ -f model.pt ]\n",
        [],
    ),
    "tries that end by themselves": (
        "DT314",
        LOOP.format(f"{TRAIN} && break\n  [ $i = 3 ] && exit 1"),
        [],
    ),
    "several trainings": ("DT314", LOOP.format(TRAIN), []),
    "monitor of the GPUs": (
        "DT315",
        MONITOR.format("nvidia-smi dmon -d 30 > log"),
        ["6 error"],
    ),
    "monitor that srun starts": (
        "DT315",
        MONITOR.format("srun --overlap -n 1 nvidia-smi -l 5"),
        ["6 error"],
    ),
    "monitor of DCGM": ("DT315", MONITOR.format("dcgmi dmon -e 1"), ["6 error"]),
    "end of a file": ("DT315", MONITOR.format("nohup tail -f log"), ["6 error"]),
    "loop without an end": (
        "DT315",
        MONITOR.format("while true; do nvidia-smi; sleep 9; done"),
        ["6 error"],
    ),
    "loop that may end": (
        "DT315",
        MONITOR.format("while true; do nvidia-smi || break; sleep 9; done"),
        [],
    ),
    "training in the foreground": (
        "DT315",
        ONE_NODE + f"nvidia-smi dmon &\n{TRAIN}\nwait\n",
        ["6 error"],
    ),
    "monitor that counts": ("DT315", MONITOR.format("nvidia-smi dmon -c 10"), []),
    "monitor with a limit": ("DT315", MONITOR.format("timeout 60 watch ls"), []),
    "monitor that is stopped": (
        "DT315",
        ONE_NODE + f"nvidia-smi dmon &\nm=$!\n{TRAIN}\nkill $m\nwait\n",
        [],
    ),
    "program with the name of a monitor as an argument": (
        "DT315",
        MONITOR.format("python collect.py watch dmon"),
        [],
    ),
    "monitor of another shell": (
        "DT315",
        ONE_NODE + f"(nvidia-smi dmon &)\n{TRAIN} &\nwait\n",
        [],
    ),
    "monitor that wait has forgotten": (
        "DT315",
        ONE_NODE + f"nvidia-smi dmon &\ndisown\n{TRAIN} &\nwait\n",
        [],
    ),
    "look at the GPUs": ("DT315", MONITOR.format("nvidia-smi"), []),
    "wait for the training only": (
        "DT315",
        MONITOR.format("nvidia-smi dmon").replace("wait", "wait $!"),
        [],
    ),
    "wait that returns 0": ("DT305", MONITOR.format("sleep 60"), ["6 warning"]),
    "wait that never returns": ("DT305", MONITOR.format("nvidia-smi dmon"), []),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_end_is_told(code, text, told):
    assert of_code(text, code) == told


def cure(text: str, code: str) -> str:
    (found,) = (each.cure for each in lint(text) if each.rule.code == code)
    return found


def run(text: str) -> subprocess.CompletedProcess[str]:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    return subprocess.run(
        [bash, "-c", text], capture_output=True, text=True, timeout=20
    )


@pytest.mark.parametrize("status", [0, 3])
def test_cure_of_a_signal_waits_for_the_end_of_the_step(status):
    """The trap ends the first wait: without the second one, the job ends before it."""
    offered = cure(SIGNAL + "srun ./a.py\n".replace("./a", "python a"), "DT306")
    lines = offered.partition("; or ")[2]
    assert lines.startswith("srun ... & step=$!; trap 'kill -USR1 $step' USR1;")
    step = f'bash -c \'trap "sleep 0.5; echo saved; exit {status}" USR1; '
    step += "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2; done'"
    signal = "(sleep 0.5; kill -USR1 $$) & "
    ended = run(signal + lines.replace("srun ...", step))
    assert (ended.stdout, ended.returncode) == ("saved\n", status)


def test_cure_of_a_trap_in_front_of_the_launch_waits_twice():
    text = SIGNAL + f"trap 'echo save' USR1\n{TRAIN}\n"
    offered = cure(text, "DT306")
    assert offered == "srun ... & step=$!; wait $step || wait $step"
    lines = offered.replace("srun ...", "(sleep 1; echo done; exit 3)")
    ended = run(f"trap 'echo save' USR1; (sleep 0.3; kill -USR1 $$) & {lines}")
    assert (ended.stdout, ended.returncode) == ("save\ndone\n", 3)


def test_cure_of_a_signal_for_torchrun_is_one_that_it_passes_on():
    text = SIGNAL + f"srun {TORCHRUN}"
    assert "kill -TERM $step' USR1" in cure(text, "DT306")


@pytest.mark.parametrize(("command", "status"), [("false", 1), ("true", 0)])
def test_cure_of_tries_ends_with_their_status(command, status):
    above, inside, below = re.findall(
        r"(status=1)|`srun ... (.*?)`|(exit \$status)",
        cure(LOOP.format(f"{TRAIN} && break"), "DT314"),
    )
    loop = f"for i in 1 2; do {command} {inside[1]}; sleep 0; done"
    ended = run(f"set -e; {above[0]}; {loop}; {below[2]}")
    assert ended.returncode == status


def test_cores_are_shared_by_the_tasks_that_lightning_needs():
    text = TWO_NODES + "#SBATCH --cpus-per-task=96\nsrun -K python a.py "
    text += "--trainer.devices=8 --trainer.num_nodes=2\n"
    assert cure(text, "DT119").endswith("=8 and #SBATCH --cpus-per-task=12")


def test_all_variables_of_the_command_are_exported():
    text = TWO_NODES + "head=a\nport=1\nexport JOB=2\nsrun -K bash -c '"
    text += C10D.format(endpoint="$head:$port") + " $JOB'\n"
    assert cure(text, "DT201") == "export head port   (above the srun)"


def test_ampersand_is_a_part_of_the_cure():
    text = "for i in 0 1; do\n  ssh n$i 'torchrun --nnodes=2 --node-rank=1 "
    text += "--master-addr=n0 a.py'\ndone\n"
    assert cure(text, "DT126").startswith("end the command of `ssh` with &, pids+=")


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("MASTER_PORT=$RANDOM; torchrun {} --master-port=$MASTER_PORT", "MASTER_PORT"),
        ("torchrun {} --master-port=$RANDOM", "port"),
    ],
)
def test_chosen_port_is_exported(inside, told):
    inside = inside.format("--nnodes=2 --node-rank=$SLURM_NODEID --master-addr=$head")
    text = TWO_NODES + f"export head=a\nsrun -K bash -c '{inside} a.py'\n"
    assert cure(text, "DT209").startswith(f"export {told}=$((")


def test_chosen_id_is_that_of_the_job():
    inside = C10D.format(endpoint="$head:1").replace("$SLURM_JOB_ID", "$RANDOM")
    text = TWO_NODES + f"export head=a\nsrun -K bash -c '{inside}'\n"
    assert cure(text, "DT209") == "--rdzv-id=$SLURM_JOB_ID"


def test_port_is_used_in_place_of_the_number():
    text = TWO_NODES + "srun -K " + C10D.format(endpoint="a:29512") + "\n"
    assert cure(text, "DT207").startswith("port=$((")
    assert cure(text, "DT207").endswith(", and $port in place of 29512")
    quoted = TWO_NODES + f"srun -K bash -c '{C10D.format(endpoint='a:29512')}'\n"
    assert cure(quoted, "DT207").startswith("export port=$((")


def test_number_in_the_text_of_a_shell_gets_a_backslash():
    text = TWO_NODES + 'CMD="torchrun --nnodes=2 --node-rank=$SLURM_NODEID \\\n'
    text += '  --master-addr=a a.py"\nsrun -K {}\n'
    assert cure(text.format('bash -c "$CMD"'), "DT107").startswith("\\$SLURM_NODEID")
    assert cure(text.format("$CMD"), "DT107").startswith("set it in each task")


def test_program_with_a_local_rank_is_told_where_to_find_it():
    text = "python -m torch.distributed.launch {}--nproc-per-node=4 a.py\n"
    assert 'os.environ["LOCAL_RANK"]' in cure(text.format(""), "DT114")
    assert "LOCAL_RANK" not in cure(text.format("--use-env "), "DT114")


def test_line_of_pbsdsh_is_told_and_not_that_of_its_file():
    text = TWO_HOSTS.format(ranks=1) + "cat > w.sh <<'END'\n#!/bin/bash\n"
    text += "torchrun --nnodes=2 --node-rank=$1 --master-addr=a a.py\nEND\n"
    text += "pbsdsh -n 0 w.sh 0\n"
    assert of_code(text, "DT310") == ["9 warning"]


def test_words_are_not_cut():
    text = "#!/bin/bash\n#SBATCH -t 2-00\nsrun python train.py "
    text += "--train-data=/data/LAION-400M/{00000..41455}.tar --batch 256\n"
    (found,) = (each.what for each in lint(text) if each.rule.code == "DT309")
    assert found.endswith(
        "`train.py --train-data=/data/LAION-400M/{00000..41455}.tar ...`"
    )
