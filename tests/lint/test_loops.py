"""Steps and loops: DT013, DT126, DT136 to DT140, and DT316 to DT318."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.lint.forms import C10D, FOUR_TASKS, ONE_NODE, TWO_NODES, of_code
from workshop.lint.linting import lint

FOUR = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=4\n"
STEPS = "for i in 1 2 3 4; do\n  srun -n 1 {} python a.py $i &\ndone\nwait\n"
READ = "while read -r host; do\n  {}\ndone < hosts\n"
RAY = ONE_NODE + "srun ray start --head {}\npython tune.py\n"
STAGED = FOUR_TASKS + "{}\nsrun -K python a.py --data {}\n"
LOG = FOUR_TASKS + "srun -K bash -c '{}'\n"
CHAIN = "#!/bin/bash\n#SBATCH --time=8:00:00\n{}\nsbatch {}$0\n"
TRAP = "#!/bin/bash\n#SBATCH --nodes=1\n{}\n{}\n"
TEMPLATE = (
    "export NAME=$1\ncat > a.tmpl <<'END'\n#!/bin/bash\n#SBATCH --job-name=$NAME\n"
    "{}\nEND\nenvsubst {}< a.tmpl > a.sbatch\nsbatch a.sbatch\n"
)
SSH = (
    'HOSTS=(a b)\nRUN="torchrun --nnodes=2 --node-rank=RANK --master-addr=a a.py"\n'
    'for ((j=0; j<2; j++)); do\n  CMD="${{RUN/RANK/$j}}"\n'
    '  ssh -n "${{HOSTS[$j]}}" "cd job && ${{CMD}}"{}\ndone\nwait\n'
)
ON_EACH = 'srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1'
CASES: dict[str, tuple[str, str, list[str]]] = {
    "mpirun in each task of srun": (
        "DT136",
        FOUR_TASKS + "srun -K mpirun -np 8 python a.py\n",
        ["4 error"],
    ),
    "mpirun in the shell of each task": (
        "DT136",
        FOUR_TASKS + "srun -K bash -c 'source e; mpirun -np 8 python a.py'\n",
        ["4 error"],
    ),
    "srun in each process of mpirun": (
        "DT136",
        TWO_NODES
        + "mpirun -np 2 --map-by ppr:1:node srun -K "
        + C10D.format(endpoint="a:1"),
        ["4 error"],
    ),
    "mpirun in one task": (
        "DT136",
        FOUR_TASKS + "srun -N 1 -n 1 mpirun -np 8 python a.py\n",
        [],
    ),
    "mpirun on the host of each task": (
        "DT136",
        TWO_NODES + "srun -K mpirun -np 4 --host localhost python a.py\n",
        [],
    ),
    "srun that mpirun starts its processes with": (
        "DT136",
        FOUR_TASKS + "mpirun -np 8 -launcher srun python a.py\n",
        [],
    ),
    "program with the name of a launcher as an argument": (
        "DT136",
        FOUR_TASKS + "srun -K python a.py --launcher mpirun\nsrun python b.py srun\n",
        [],
    ),
    "steps with all cores": ("DT137", FOUR + STEPS.format(""), ["5 warning"]),
    "steps with all GPUs": (
        "DT137",
        FOUR + "#SBATCH --gres=gpu:4\n" + STEPS.format("--exact"),
        ["6 warning"],
    ),
    "two steps with all cores": (
        "DT137",
        FOUR + "srun -n 1 python a.py &\nsrun -n 1 python b.py &\nwait\n",
        ["4 warning"],
    ),
    "steps with their own cores": ("DT137", FOUR + STEPS.format("--exact"), []),
    "steps with a number of cores": ("DT137", FOUR + STEPS.format("-c 2"), []),
    "steps that share": ("DT137", FOUR + STEPS.format("--overlap"), []),
    "steps with one GPU each": (
        "DT137",
        FOUR + "#SBATCH --gres=gpu:4\n" + STEPS.format("--exact --gres=gpu:1"),
        [],
    ),
    "one step beside a monitor": (
        "DT137",
        FOUR + "srun --overlap nvidia-smi dmon &\nsrun python a.py &\nwait $!\n",
        [],
    ),
    "steps on several nodes": (
        "DT137",
        FOUR.replace("nodes=1", "nodes=4") + STEPS.format("-N 1"),
        [],
    ),
    "steps one after the other": (
        "DT137",
        FOUR + STEPS.format("").replace("&\n", "&\n  wait\n"),
        [],
    ),
    "option in the environment": (
        "DT137",
        FOUR + "export SLURM_EXACT=1\n" + STEPS.format(""),
        [],
    ),
    "ssh that reads the list": ("DT138", READ.format("ssh $host ls"), ["2 error"]),
    "srun that reads the list": (
        "DT138",
        ONE_NODE + READ.format("srun -w $host -n 1 ls"),
        ["5 error"],
    ),
    "ssh behind a pipe": (
        "DT138",
        "cat hosts | while read host; do\n  ssh $host ls\ndone\n",
        ["2 error"],
    ),
    "ssh whose output is kept": (
        "DT138",
        READ.format("free=$(ssh -o A=no $host df)"),
        ["2 error"],
    ),
    "remote command in the background": (
        "DT138",
        READ.format('ssh $host "nohup ./a < /dev/null &"'),
        ["2 error"],
    ),
    "ssh -n": ("DT138", READ.format("ssh -n $host ls"), []),
    "ssh -fn": ("DT138", READ.format("ssh -fn $host ls"), []),
    "ssh in the background": ("DT138", READ.format("ssh $host ls &"), []),
    "ssh with another input": ("DT138", READ.format("ssh $host ls < /dev/null"), []),
    "list of another descriptor": (
        "DT138",
        "while read -u 3 host; do\n  ssh $host ls\ndone 3< hosts\n",
        [],
    ),
    "ssh below the loop": ("DT138", READ.format("echo $host") + "ssh a ls\n", []),
    "ssh in a for": ("DT138", "for h in $(cat hosts); do\n  ssh $h ls\ndone\n", []),
    "ray in front": ("DT316", RAY.format("--block"), ["4 error"]),
    "ray beside": ("DT316", RAY.format("--block &"), []),
    "ray without --block": ("DT316", RAY.format(""), []),
    "ray with a limit": (
        "DT316",
        RAY.format("--block").replace("srun", "timeout 9"),
        [],
    ),
    "ray at the end": ("DT316", ONE_NODE + "python a.py\nray start --block\n", []),
    "monitor in front": (
        "DT316",
        ONE_NODE + "nvidia-smi dmon > log\npython a.py\n",
        ["4 error"],
    ),
    "branch of one node": (
        "DT316",
        ONE_NODE + "if [ $1 = worker ]; then\n  ray start --block\nfi\npython a.py\n",
        [],
    ),
    "data on the first node": (
        "DT139",
        STAGED.format("tar xf a.tar -C /tmp/data", "/tmp/data/train"),
        ["4 error"],
    ),
    "data in a variable": (
        "DT139",
        STAGED.format("D=$SLURM_TMPDIR/d\nunzip -q a.zip -d $D", "$D"),
        ["5 error"],
    ),
    "data on a disk that may be shared": (
        "DT139",
        STAGED.format("cp -r data $TMPDIR/d", "$TMPDIR/d"),
        ["4 warning"],
    ),
    "environment on the first node": (
        "DT139",
        STAGED.format("python -m venv /tmp/e\nsource /tmp/e/bin/activate", "a"),
        ["4 error"],
    ),
    "data that is fetched, and code": (
        "DT139",
        STAGED.format(
            "wget -q u -P /tmp/d\ngit clone u /tmp/c\ncd /tmp/c\nexport D=/tmp/d", "a"
        ),
        ["4 error", "5 error"],
    ),
    "data on all nodes": (
        "DT139",
        STAGED.format("srun -n 2 tar xf a.tar -C /tmp/data", "/tmp/data"),
        [],
    ),
    "data on all nodes, in a text": (
        "DT139",
        STAGED.format(
            "tar xf a.tar -C /tmp/data\nsrun bash <<END\nls /tmp/data\nEND", "/tmp/data"
        ),
        [],
    ),
    "data that ranks don't read": (
        "DT139",
        STAGED.format("tar xf a.tar -C /tmp/data", "/tmp/database"),
        [],
    ),
    "data that is fetched below": (
        "DT139",
        FOUR_TASKS + "cd /tmp/d\nsrun -K python a.py; git clone u /tmp/d\n",
        [],
    ),
    "data on a shared disk": (
        "DT139",
        STAGED.format("tar xf a.tar -C /scratch/data", "/scratch/data"),
        [],
    ),
    "data on one node": (
        "DT139",
        ONE_NODE + "tar xf a.tar -C /tmp/d\nsrun python a.py /tmp/d\n",
        [],
    ),
    "one log": ("DT140", LOG.format("python a.py > log"), ["4 warning"]),
    "one log of the job": (
        "DT140",
        LOG.format("python a.py > $SLURM_JOB_ID.log 2>&1"),
        ["4 warning"],
    ),
    "one log of tee": ("DT140", LOG.format("python a.py | tee log"), ["4 warning"]),
    "log of each task": ("DT140", LOG.format("python a.py > $SLURM_PROCID.log"), []),
    "log of each task, in a variable": (
        "DT140",
        LOG.format("R=$SLURM_PROCID; python a.py > r$R.log"),
        [],
    ),
    "log that is appended to": ("DT140", LOG.format("python a.py >> log"), []),
    "no log": ("DT140", LOG.format("python a.py > /dev/null 2>&1"), []),
    "log of the whole step": ("DT140", FOUR_TASKS + "srun -K python a.py > log\n", []),
    "log of another command": ("DT140", LOG.format("env > e; python a.py"), []),
    "chain behind": ("DT317", CHAIN.format("srun python a.py", ""), ["4 warning"]),
    "chain of another script": (
        "DT317",
        CHAIN.format("srun python a.py", "").replace("$0", "eval.sbatch"),
        [],
    ),
    "chain above": (
        "DT317",
        CHAIN.format("", "--dependency=afterany:$SLURM_JOB_ID ") + "srun python a.py\n",
        [],
    ),
    "chain after a part of the time": (
        "DT317",
        CHAIN.format("timeout 7h srun python a.py", ""),
        [],
    ),
    "chain after some steps": (
        "DT317",
        CHAIN.format("srun python a.py --max-steps 100", ""),
        [],
    ),
    "chain that a signal continues": (
        "DT317",
        CHAIN.format("#SBATCH --signal=B:USR1@60\nsrun python a.py", ""),
        [],
    ),
    "chain if it isn't finished": (
        "DT317",
        CHAIN.replace("sbatch {}$0", "[ -f end ] || sbatch {}$0").format(
            "srun python a.py", ""
        ),
        [],
    ),
    "trap under exec": (
        "DT318",
        TRAP.format("trap 'ls' EXIT", "exec srun python a.py"),
        ["4 error"],
    ),
    "trap of a signal": (
        "DT318",
        TRAP.format("trap 'ls' USR1", "exec srun python a.py"),
        [],
    ),
    "trap that is removed": (
        "DT318",
        TRAP.format("trap 'ls' EXIT; trap - EXIT", "exec srun python a.py"),
        [],
    ),
    "exec of a log": (
        "DT318",
        TRAP.format("trap 'ls' EXIT", "exec > log 2>&1\nsrun python a.py"),
        [],
    ),
    "exec in another shell": (
        "DT318",
        TRAP.format("trap 'ls' EXIT", "(exec srun python a.py)"),
        [],
    ),
    "template with variables of the job": (
        "DT013",
        TEMPLATE.format("python a.py $SLURM_JOB_ID", ""),
        ["7 error"],
    ),
    "template with variables of its own": (
        "DT013",
        TEMPLATE.format("N=3\npython a.py $N", ""),
        ["8 error"],
    ),
    "template with a list of names": (
        "DT013",
        TEMPLATE.format("python a.py $SLURM_JOB_ID", "'$NAME' "),
        [],
    ),
    "template with exported variables alone": (
        "DT013",
        TEMPLATE.format("python a.py $NAME", ""),
        [],
    ),
    "loop of ssh, with the rank put in": ("DT126", SSH.format(""), ["5 error"]),
    "loop of ssh in the background": ("DT126", SSH.format(" &"), []),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_step_or_loop_is_told(code, text, told):
    assert of_code(text, code) == told


@pytest.mark.parametrize(
    ("text", "code", "cure"),
    [
        (
            FOUR
            + "#SBATCH --gres=gpu:4\n#SBATCH --mem=200G\n#SBATCH -c 8\n"
            + STEPS.format(""),
            "DT137",
            "srun --exact --cpus-per-task=8 --gres=gpu:1 --mem=50G ...",
        ),
        (
            STAGED.format("mkdir /tmp/d\ntar xf a.tar -C /tmp/d", "/tmp/d"),
            "DT139",
            f"{ON_EACH} in front of lines 4 and 5",
        ),
        (
            STAGED.format(
                "virtualenv /tmp/e\n. /tmp/e/bin/activate\npip install torch", "a"
            ),
            "DT139",
            f"{ON_EACH} in front of lines 4 and 6",
        ),
        (LOG.format("python a.py > t.log"), "DT140", "> t-$SLURM_PROCID.log"),
        (LOG.format("python a.py | tee t.log"), "DT140", "tee t-$SLURM_PROCID.log"),
        (
            CASES["template with variables of the job"][1],
            "DT013",
            "envsubst '$NAME' < ...",
        ),
        (CASES["ssh that reads the list"][1], "DT138", "ssh -n ..."),
        (CASES["srun that reads the list"][1], "DT138", "srun ... < /dev/null"),
    ],
)
def test_cure_is_complete(text, code, cure):
    (found,) = (each for each in lint(text) if each.rule.code == code)
    assert found.cure == cure


def test_script_submits_itself_by_its_name():
    text = CHAIN.format("srun python a.py", "").replace("$0", "jobs/a.sbatch")
    for name, told in (("jobs/a.sbatch", True), ("jobs/b.sbatch", False)):
        assert ("DT317" in {each.rule.code for each in lint(text, name)}) == told


def test_exec_really_removes_the_trap():
    bash = shutil.which("bash")
    assert bash
    for word, said in (("exec ", "a\n"), ("", "a\nb\n")):
        script = f"trap 'echo b' EXIT\n{word}echo a\n"
        if word:
            script = script.replace("echo a", "/bin/echo a")
        done = subprocess.run([bash], input=script, capture_output=True, text=True)
        assert done.stdout == said
