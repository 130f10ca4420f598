"""Forms of right and wrong scripts that the linter once took for the other kind."""

from __future__ import annotations

import pytest

from workshop.lint.linting import lint

SLURM = "#!/bin/bash\n#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node={tasks}\n"
ONE_NODE = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\n"
SIGNAL = (
    "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --signal=B:USR1@60\n"
    "trap 'kill $pid' USR1\n"
)
WAITS = "pid=$!\nwait $pid\n"
IN_EACH_TASK = (
    "srun -K bash -c 'torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d "
    "--rdzv-endpoint=$head:$port train.py'\n"
)
WRITES = (
    "cat > run.sh <<{end}\n#!/bin/bash\nsource env.sh\nexec torchrun --nnodes=2 "
    "--node-rank={number} --nproc-per-node=4 \\\n  --master-addr=node01 $@\nEND\n"
)
TORCHRUN = "torchrun --standalone --nproc-per-node=4 train.py\n"
C10D = (
    "srun -K torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d "
    "--rdzv-id=$SLURM_JOB_ID --rdzv-endpoint=$(hostname):29512 train.py\n"
)


def slurm(nodes: int, tasks: int) -> str:
    return SLURM.format(nodes=nodes, tasks=tasks)


RIGHT = {
    "job script that another command reads from a here-document": (
        "#!/bin/bash\nbsub <<END\n#BSUB -n 4\npython train.py\nEND\n"
    ),
    "job script inside a quoted text": (
        "#!/bin/bash\n: '\n#SBATCH --nodes=2\n#sbatch --time=1\nsrun ./job.sh\n'\n"
        "python submit.py\n"
    ),
    "job script that echo writes": (
        "#!/bin/bash\n#SBATCH --nodes=1\nmkdir -p jobs\n"
        'echo "#!/bin/bash\n#SBATCH --nodes=2\nsrun ./job.sh" > jobs/one.sh\n'
    ),
    "RANK in the job script, which torchrun replaces": (
        slurm(2, 1) + "export RANK=$SLURM_PROCID NODE_RANK=$SLURM_NODEID\n" + C10D
    ),
    "RANK that only a message of a step reads": (
        slurm(2, 1) + "export RANK=$SLURM_PROCID\nsrun -K hostname\n" + C10D
    ),
    "local rank where each node has one task": (
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks=2\n"
        "export LOCAL_RANK=$SLURM_LOCALID\nsrun -K python train.py\n"
    ),
    "rank of a step with one task": (
        slurm(1, 4) + "srun -n 1 python prepare.py --rank $SLURM_PROCID\n"
    ),
    "function that each task runs": (
        slurm(2, 1) + "run() {\n  torchrun --nnodes=2 --node-rank=$SLURM_NODEID "
        "--nproc-per-node=4 --master-addr=$head train.py\n}\nexport -f run\n"
        "export head=$(hostname)\nsrun -K bash -c run\n"
    ),
    "one task on each node that starts a rank for each GPU": (
        slurm(2, 1) + "#SBATCH --gres=gpu:4\nexport WORLD_SIZE=8\n"
        "srun -K python spawn.py\n"
    ),
    "two types of GPUs": (
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:a100:2,gpu:v100:2\n"
        + TORCHRUN
    ),
    "variable that the script asks for": (
        ONE_NODE
        + 'if [ -n "$SLURM_GPUS_PER_NODE" ]; then N=$SLURM_GPUS_PER_NODE; fi\n'
        + TORCHRUN
    ),
    "variable that the script gives a value": (
        ONE_NODE + ': "${SLURM_CPUS_PER_TASK:=4}"\n'
        "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n" + TORCHRUN
    ),
    "empty variable in a message": (
        ONE_NODE + 'log "tasks: $SLURM_NTASKS_PER_NODE"\n'
        "cat <<END\ntasks: $SLURM_NTASKS_PER_NODE\nEND\n" + TORCHRUN
    ),
    "options of a launch line that a branch adds": (
        slurm(2, 1) + 'RUN="torchrun --nproc-per-node=4"\n'
        'if [ "$SLURM_NNODES" -gt 1 ]; then\n  RUN="$RUN --nnodes=2 '
        '--rdzv-backend=c10d --rdzv-endpoint=$(hostname):29512"\nfi\n'
        "srun -K $RUN train.py\n"
    ),
    "subshell in the background, which a trap signals": (
        SIGNAL + "( cd run && srun python train.py --resume ) &\n" + WAITS
    ),
    "group in the background, with its output in a file": (
        SIGNAL + "{\n  srun python train.py --resume\n} > log 2>&1 &\n" + WAITS
    ),
    "pipe in the background": (
        SIGNAL + "srun python train.py --resume 2>&1 | tee log &\n" + WAITS
    ),
    "loop in the background": (
        SIGNAL
        + "for i in 1 2; do\n  srun python train.py --resume $i\ndone &\n"
        + WAITS
    ),
    "function in the background": (
        SIGNAL + "work() {\n  srun python train.py --resume\n}\nwork &\n" + WAITS
    ),
    "address that only the first task asks its node for": (
        slurm(2, 1) + "srun -K bash -c 'if [ $SLURM_NODEID -eq 0 ]; then "
        "hostname > head; fi; sleep 9; MASTER_ADDR=$(cat head); torchrun --nnodes=2 "
        "--nproc-per-node=4 --node-rank=$SLURM_NODEID --master-addr=$MASTER_ADDR "
        "train.py'\n"
    ),
    "list of options inside of a text, of which one is what a command prints": (
        slurm(2, 1)
        + 'A=(--rdzv-endpoint="$(scontrol show hostnames | head -n 1):29512" '
        '--nnodes=2 --rdzv-backend=c10d)\nRUN="torchrun ${A[*]} train.py"\n'
        "srun -K $RUN\n"
    ),
    "options in a variable of any name, which a branch sets": (
        slurm(2, 1) + 'if [ "$1" ]; then\n  HOW="--nnodes=2 --rdzv-backend=c10d '
        '--rdzv-endpoint=node01:29512"\nfi\nsrun -K torchrun $HOW train.py\n'
    ),
    "address that a later line exports": (
        slurm(2, 1) + "head=$(hostname)\nport=29512\nexport head port\n" + IN_EACH_TASK
    ),
    "address that everything exports": (
        slurm(2, 1) + "set -a\nhead=$(hostname)\nport=29512\n" + IN_EACH_TASK
    ),
    "address that srun exports": (
        slurm(2, 1)
        + "head=$(hostname)\nport=29512\n"
        + IN_EACH_TASK.replace("srun", "srun --export=ALL,head=$head,port=$port")
    ),
    "address in front of the command": (
        slurm(2, 1) + "h=$(hostname)\nhead=$h port=29512 " + IN_EACH_TASK
    ),
    "address that comes from the shell that submits": slurm(2, 1) + IN_EACH_TASK,
    "address that each task reads from a file": (
        slurm(2, 1)
        + "head=$(hostname)\n"
        + IN_EACH_TASK.replace("torchrun", "source ./where; torchrun", 1)
    ),
    "address in double quotes": (
        slurm(2, 1)
        + "head=$(hostname)\nport=29512\necho '$head'\n"
        + IN_EACH_TASK.replace("'", '"')
    ),
    "file with an escaped number of the task": (
        slurm(2, 1)
        + WRITES.format(end="END", number=r"\$SLURM_NODEID")
        + "srun -K bash run.sh train.py\n"
    ),
    "file with the number of the task, and its end in quotes": (
        slurm(2, 1)
        + WRITES.format(end="'END'", number=r"$SLURM_NODEID")
        + "srun -K bash run.sh train.py\n"
    ),
    "two files of one name": (
        slurm(2, 4)
        + "if [ $1 ]; then\n"
        + WRITES.format(end="'END'", number=r"$SLURM_NODEID")
        + "fi\nsrun -K bash run.sh train.py\n"
    ),
    "launcher in the first task of each node alone": (
        slurm(2, 4) + "srun -K bash -c 'if [ $SLURM_LOCALID -eq 0 ]; then torchrun "
        "--nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=n a; fi'\n"
    ),
    "launcher behind a test of the task's number": (
        slurm(2, 4) + "srun -K bash -c '[ $SLURM_LOCALID = 0 ] && torchrun "
        "--nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=n:9 a.py'\n"
    ),
    "file that hands on its words": (
        slurm(2, 4) + "cat > each.sh <<'END'\n#!/bin/bash\nexport LOCAL_RANK="
        '$SLURM_LOCALID\nexec "$@"\nEND\nsrun -K bash each.sh python train.py\n'
    ),
    "empty variable in the name of a folder": (
        ONE_NODE + 'OUT="runs/g$SLURM_GPUS_PER_TASK-j$SLURM_JOB_ID"\n'
        "srun -K python train.py --out $OUT --name a_${SLURM_GPUS_PER_TASK}_b\n"
    ),
    "variable that a test has looked at": (
        ONE_NODE + 'if [ "$SLURM_CPUS_PER_TASK" -gt 0 ]; then\n'
        "  export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\nfi\n" + TORCHRUN
    ),
    "overruled number of tasks, where more of them do no harm": (
        slurm(2, 4) + "srun --ntasks-per-node=1 mkdir -p /tmp/data\n"
        "srun -K python train.py\n"
    ),
    "note below the first command that begins like a directive": (
        ONE_NODE + "module load cuda\n#SBATCH WARNING: change the account\n" + TORCHRUN
    ),
    "job script in Python": (
        "#!/usr/bin/env python3\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
        "import os\nRANK = os.environ['SLURM_PROCID']\nleft = (8\n    -int(RANK))\n"
    ),
    "options in an array, a text and a case": (
        "#!/bin/bash\n#SBATCH --nodes=1\ncase $1 in\n  -h|--help) exit ;;\n"
        '  --new) new=1 ;;\nesac\nA=(\n  --a\n  --b 2\n)\nB="\n  --c\n"\n' + TORCHRUN
    ),
}
WRONG = {
    "directive below the first line of a job script in Python": (
        "#!/usr/bin/python3 -u\n# a note\nimport os\n#SBATCH --nodes=2\n",
        ["DT001"],
    ),
    "launch in the foreground beside a command in the background": (
        SIGNAL + "nvidia-smi -l 60 > gpus &\nsrun python train.py --resume\n",
        ["DT306"],
    ),
    "subshell in the foreground": (
        SIGNAL + "(srun python train.py --resume)\n",
        ["DT306"],
    ),
    "subshell in the background that nothing waits for": (
        ONE_NODE + "(cd run && srun python train.py --resume) &\necho started\n",
        ["DT303"],
    ),
    "own name that each task exports, before its node rank": (
        slurm(2, 1) + "srun -K bash -c 'export MASTER_ADDR=$(hostname); torchrun "
        "--nnodes=2 --nproc-per-node=4 --node-rank=$SLURM_NODEID "
        "--master-addr=$MASTER_ADDR a.py'\n",
        ["DT206"],
    ),
    "own name in a variable of any name": (
        slurm(2, 1) + "srun -K bash -c 'head=$(hostname -s); torchrun --nnodes=2 "
        "--nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$head:29512 a.py'\n",
        ["DT206"],
    ),
    "port that each task draws by arithmetic": (
        slurm(2, 1) + "export head=$(hostname)\n"
        "srun -K bash -c 'port=$((20000 + RANDOM % 9000)); torchrun --nnodes=2 "
        "--nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$head:$port a.py'\n",
        ["DT209"],
    ),
    "list of options inside of a text": (
        slurm(2, 1) + "A=(--nnodes=2\n  --rdzv-backend=c10d\n"
        '  --rdzv-endpoint=node01:29512)\nRUN="torchrun ${A[*]} train.py"\n$RUN\n',
        ["DT103"],
    ),
    "address that the job script doesn't export": (
        slurm(2, 1) + "head=$(hostname)\nexport port=29512\n" + IN_EACH_TASK,
        ["DT201"],
    ),
    "address that isn't exported to tasks which activate an environment": (
        slurm(2, 1)
        + "head=$(hostname)\nexport port=29512\n"
        + IN_EACH_TASK.replace("torchrun", "source .venv/bin/activate; torchrun", 1),
        ["DT201"],
    ),
    "launcher in a file that the job script writes": (
        slurm(2, 4)
        + WRITES.format(end="'END'", number=r"$SLURM_NODEID")
        + "srun -K bash run.sh train.py\n",
        ["DT101"],
    ),
    "file that is run by its name, in a container": (
        slurm(2, 4)
        + WRITES.format(end="'END'", number=r"$SLURM_NODEID")
        + "chmod +x run.sh\nsrun -K apptainer exec --nv torch.sif ./run.sh train.py\n",
        ["DT101"],
    ),
    "number of the task that is replaced in a file": (
        slurm(2, 1)
        + WRITES.format(end="END", number=r"$SLURM_NODEID")
        + "srun -K bash run.sh train.py\n",
        ["DT107"],
    ),
    "own name in a file": (
        slurm(2, 1)
        + WRITES.format(end="'END'", number=r"$SLURM_NODEID").replace(
            "node01", "$(hostname)"
        )
        + "srun -K bash run.sh train.py\n",
        ["DT206"],
    ),
    "address on a line that is cut off": (
        slurm(2, 1) + "srun -K torchrun --nnodes=2 --rdzv-backend=c10d \\ # one\n"
        "  --rdzv-endpoint=node01:29512 train.py\n",
        ["DT012"],
    ),
    "address behind a comment in between": (
        slurm(2, 1) + "srun -K torchrun --nnodes=2 --rdzv-backend=c10d \\\n"
        "  # --rdzv-id=7 \\\n  --rdzv-endpoint=node01:29512 train.py\n",
        ["DT012"],
    ),
    "number of nodes on a line of its own": (
        slurm(2, 1) + "srun -K torchrun\n  --nnodes=2 --rdzv-backend=c10d \\\n"
        "  --rdzv-endpoint=node01:29512 train.py\n",
        ["DT012"],
    ),
    "two commands, of which one is cut off": (
        slurm(2, 1) + "python look.py \\ # one\n  --epochs 9\n"
        "srun -K torchrun --nnodes=2 --rdzv-backend=c10d train.py\n",
        ["DT012", "DT201"],
    ),
    "empty variable behind the letter of an option": (
        ONE_NODE + "mpirun -n$SLURM_GPUS python train.py\n",
        ["DT109"],
    ),
    "empty variable in a sum": (
        ONE_NODE + "export OMP_NUM_THREADS=$(($SLURM_CPUS_PER_TASK - 1))\n" + TORCHRUN,
        ["DT109"],
    ),
    "line without a backslash": (
        ONE_NODE + "torchrun --standalone --nproc-per-node=4 train.py\n  --epochs 9\n",
        ["DT012"],
    ),
    "empty line after a backslash": (
        ONE_NODE + "python train.py \\\n\n  --epochs 9 \\\n  --seed 1\n",
        ["DT012"],
    ),
    "all tasks see the first GPU": (
        slurm(1, 4) + "export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID\n"
        "srun -K python train.py\n",
        ["DT107"],
    ),
    "RANK in the job script, which a program reads": (
        slurm(2, 4) + "export RANK=$SLURM_PROCID\nsrun -K python train.py\n",
        ["DT107"],
    ),
    "local rank of several tasks on a node": (
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks=4\n"
        "export LOCAL_RANK=$SLURM_LOCALID\nsrun -K python train.py\n",
        ["DT107"],
    ),
    "world size of another job": (
        slurm(2, 1) + "#SBATCH --gres=gpu:4\nexport WORLD_SIZE=16\n"
        "srun -K python spawn.py\n",
        ["DT118"],
    ),
    "more ranks than two types of GPUs": (
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:a100:2,gpu:v100:1\n"
        + TORCHRUN,
        ["DT110"],
    ),
    "launch line that a branch makes longer": (
        slurm(2, 1)
        + "#SBATCH --signal=USR2@600\nhead=node01\nA=(--nnodes=2 --nproc-per-node=4)\n"
        'RUN="torchrun ${A[@]} --rdzv-backend=c10d --rdzv-endpoint=$head:29512 '
        'train.py"\nif [ -n "$NAME" ]; then\n  RUN="$RUN --name $NAME"\nfi\n'
        'srun -K bash -c "numactl --membind=0-3 $RUN"\n',
        ["DT307"],
    ),
    "empty variable in an option of an array": (
        ONE_NODE + "A=(--standalone --nproc-per-node=$SLURM_GPUS_PER_NODE)\n"
        'torchrun "${A[@]}" train.py\n',
        ["DT109"],
    ),
}


TWO_LINES = (
    "--nproc-per-node=4 --rdzv-backend=c10d \\\n  --rdzv-endpoint=localhost:29512"
)
LINES = {
    "option in a variable, unquoted": (
        slurm(2, 1) + f'RUN="torchrun --nnodes=2 {TWO_LINES}"\nsrun -K $RUN train.py\n',
        (5, "DT203"),
    ),
    "option in a variable, as the text of a shell": (
        slurm(2, 1) + f'RUN="torchrun --nnodes=2 {TWO_LINES}"\n'
        'srun -K bash -c "$RUN train.py"\n',
        (5, "DT203"),
    ),
    "option in a variable of a variable": (
        slurm(2, 1) + f'RUN="torchrun --nnodes=2 {TWO_LINES}"\nALL="$RUN train.py"\n'
        "srun -K $ALL\n",
        (5, "DT203"),
    ),
    "launch line in a variable, which the script runs itself": (
        slurm(2, 1) + 'RUN="torchrun --nnodes=2 --rdzv-backend=c10d \\\n'
        '  --rdzv-endpoint=$(hostname):29512 train.py"\necho go\n$RUN\n',
        (7, "DT103"),
    ),
    "number of the task in a variable of several lines": (
        slurm(2, 1) + 'RUN="torchrun --nnodes=2 \\\n  --node-rank=$SLURM_NODEID \\\n'
        '  --master-addr=node01 train.py"\nsrun -K bash -c "$RUN"\n',
        (5, "DT107"),
    ),
    "srun above the program in its shell": (
        slurm(2, 4) + "srun bash -c '\n  source env.sh\n  python train.py\n'\n",
        (4, "DT301"),
    ),
    "cores of an srun above the program in its shell": (
        slurm(2, 4) + "#SBATCH --cpus-per-task=8\n"
        "srun -K bash -c '\n  source env.sh\n  python train.py\n'\n",
        (5, "DT113"),
    ),
}


@pytest.mark.parametrize(("text", "told"), LINES.values(), ids=LINES.keys())
def test_line_is_the_one_to_change(text, told):
    line, code = told
    assert [each.line for each in lint(text) if each.rule.code == code] == [line]


def test_comment_above_a_variable_of_several_lines_silences_its_lines():
    text, (_, code) = LINES["option in a variable, unquoted"]
    silenced = text.replace("RUN=", f"# workshop: ignore {code}\nRUN=", 1)
    assert code in [each.rule.code for each in lint(text)]
    assert code not in [each.rule.code for each in lint(silenced)]


def test_cure_of_a_missing_address_has_the_names_of_the_script():
    text = (
        slurm(2, 1) + "export MASTER_ADDR=$(hostname) MASTER_PORT=29512\n"
        "srun -K torchrun --nnodes=2 --rdzv-backend=c10d train.py\n"
    )
    (found,) = (each for each in lint(text) if each.rule.code == "DT201")
    assert found.cure.endswith("--rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT")


def test_command_is_named_that_the_trap_waits_for():
    text = SIGNAL + "parallel python train.py --resume ::: 1 2\n"
    (found,) = (each for each in lint(text) if each.is_error)
    assert "`parallel` of line 5" in found.what


def test_article_fits_the_name_of_the_launcher():
    text = slurm(2, 4) + "srun -K accelerate launch --num_machines=2 train.py\n"
    (found,) = (each for each in lint(text) if each.rule.code == "DT101")
    assert found.what.endswith("every one is an accelerate launch")


def test_line_in_a_written_file_is_that_of_the_number():
    text, _ = WRONG["number of the task that is replaced in a file"]
    (found,) = (each for each in lint(text) if each.is_error)
    assert found.line == 7
    assert "'END'" in found.cure


FAILS = ONE_NODE + "srun -K python train.py\n"
WARNED = {
    "status lost behind the time that the training took": (
        FAILS + 'end=$(date +%s)\necho "took $((end - SECONDS)) s"\n',
        (6, "DT304", "`echo "),
    ),
    "status lost behind a clean-up": (
        FAILS + 'echo ready\nrm -rf "$TMPDIR/data"\n',
        (6, "DT304", "`rm -rf "),
    ),
    "status lost in the pipe of a block": (
        ONE_NODE + "(cd run && srun -K python train.py) 2>&1 | tee log\n",
        (4, "DT302", "`tee`"),
    ),
    "status lost behind set +x": (FAILS + "set +x\n", (5, "DT304", "`set +x`")),
    "status that is shown, and lost": (
        FAILS + 'status=$?\necho "python: $status"\n',
        (6, "DT304", "`echo "),
    ),
    "status that is kept, and lost": (
        FAILS + "status=$?\n",
        (5, "DT304", "`status=$?`"),
    ),
    "requeue by a trap, and no word of resuming": (
        SIGNAL + "again() {\n  scontrol requeue $SLURM_JOB_ID\n}\n"
        "srun python train.py --epochs 9 &\n" + WAITS,
        (6, "DT308", "`train.py`"),
    ),
    "script that submits itself again": (
        ONE_NODE + "python train.py --epochs 9\nsbatch $0\n",
        (5, "DT308", "`train.py`"),
    ),
}
QUIET = {
    "status that the last line hands on": FAILS + "end=$(date)\nexit $?\n",
    "status kept for the last line": (
        FAILS + "status=$?\nrm -rf /tmp/data\nexit $status\n"
    ),
    "status that a trap hands on": (
        "#!/bin/bash\n#SBATCH --nodes=1\nend() {\n  exit $status\n}\n"
        "trap end EXIT\nsrun python train.py\nstatus=$?\n"
    ),
    "requeue, and a program that resumes": (
        SIGNAL + "again() {\n  scontrol requeue $SLURM_JOB_ID\n}\n"
        "srun python train.py --resume last.pt &\n" + WAITS
    ),
}


@pytest.mark.parametrize(("text", "told"), WARNED.values(), ids=WARNED.keys())
def test_warning_names_the_line_and_its_words(text, told):
    line, code, words = told
    found = [each for each in lint(text) if each.rule.code == code]
    assert [each.line for each in found] == [line]
    assert words in found[0].what


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET.keys())
def test_right_form_gives_no_warning_of_its_end(text):
    assert [each for each in lint(text) if each.rule.code in ("DT304", "DT308")] == []


@pytest.mark.parametrize(
    "text",
    [
        FAILS.replace(".py", ".py &") * 2 + "wait\n",
        ONE_NODE + "for i in 1 2; do\n  srun -K python train.py &\ndone\nwait\n",
        ONE_NODE + "for i in 1 2; do\n  srun -K python train.py &\ndone\n",
    ],
)
def test_cure_of_several_launches_waits_for_each_of_them(text):
    (found,) = (each for each in lint(text) if each.rule.code in ("DT303", "DT305"))
    assert 'for pid in "${pids[@]}"' in found.cure


@pytest.mark.parametrize(
    ("options", "told"),
    [("", True), ("--wait=0", True), ("--wait=60", False), ("-W 60", False)],
)
def test_srun_with_a_wait_ends_the_other_tasks_itself(options, told):
    text = slurm(2, 4) + f"srun {options} python train.py\n"
    assert ("DT301" in [each.rule.code for each in lint(text)]) == told


def codes_of_errors(text: str) -> list[str]:
    return sorted({each.rule.code for each in lint(text) if each.is_error})


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT.keys())
def test_right_form_gives_no_error(text):
    assert codes_of_errors(text) == []


@pytest.mark.parametrize(("text", "codes"), WRONG.values(), ids=WRONG.keys())
def test_wrong_form_gives_its_error(text, codes):
    assert codes_of_errors(text) == codes
