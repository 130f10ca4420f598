"""Rules about what is started, where, and how often."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .directives import slurm_options
from .launches import LAUNCHERS, Launch, base, launches_of, pairs
from .rule import ERROR, WARNING, Problem, Table
from .script import NODES, Script, is_one_of
from .shell import Assignment
from .words import Word

TABLE = Table()
TASK_VARIABLE = re.compile(r"\$\{?(SLURM_(?:NODEID|PROCID|LOCALID))\b")
QUOTED_HEREDOC = re.compile(r"<<-?\s*['\"\\]")
DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):-(\d{1,4})\}")
LITERAL = re.compile(r"\$\{?[A-Za-z_]\w*\}?")
# Variables of Slurm that exist only if the job asked with the option.
ONLY_WITH = {
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
    "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_GPUS_PER_NODE": "gpus-per-node",
    "SLURM_GPUS_PER_TASK": "gpus-per-task",
    "SLURM_GPUS": "gpus",
}
RANK_NAMES = {
    *("RANK", "NODE_RANK", "NODERANK", "MACHINE_RANK", "LOCAL_RANK", "GLOBAL_RANK"),
    *("node_rank", "machine_rank", "NODE_ID"),
}
# With SLURM_LOCALID in the job script, all tasks get the first GPU.
VISIBLE = {
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
}
TORCHRUNS = ("torchrun", "launch")
# What may start processes on other nodes.
SPREADS = re.compile(
    r"\b(srun|mpirun|mpiexec\S*|pbsdsh|pbs_tmrsh|ssh|pdsh|clush|ray|dask|aprun)\b"
)
# Programs of a step that train nothing.
LOOKS_ONLY = {
    "hostname",
    "nvidia-smi",
    "rocm-smi",
    "mkdir",
    "rm",
    "cp",
    "tar",
    "rsync",
    "echo",
    "printenv",
    "env",
    "date",
    "ls",
    "cat",
    "sleep",
    "true",
    "pwd",
}
ONCE_OR_OFTEN = LOOKS_ONLY - {"cp", "tar", "rsync"}  # several at once do no harm
WORKERS = re.compile(r"--?(?:[\w.]*[._-])?(?:num[-_]?)?workers(?:=(\d+))?$")


def times(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def ranks_of(script: Script, launch: Launch) -> int | None:
    """How many ranks one torchrun starts on its node."""
    given = launch.option("nproc-per-node")
    if launch.kind in TORCHRUNS:
        if given is None:
            return None if "$" in launch.options else 1
        return script.number(given)
    return None


def ranks_by_default(script: Script, launch: Launch) -> int | None:
    """The default of ``${NAME:-8}``, where nothing in the script sets the variable."""
    match = DEFAULT.fullmatch(launch.option("nproc-per-node") or "")
    if match is None or match[1].startswith(("SLURM_", "PBS_")):
        return None
    name = match[1]
    own = [each.word.value for each in script.variables.found.get(name, [])]
    by_default = all(value == f"{name}={match[0]}" for value in own)
    elsewhere = script.reads_other_files or name in script.variables.set_otherwise
    return int(match[2]) if by_default and not elsewhere else None


def nnodes_of(script: Script, launch: Launch) -> int | None:
    """The number of nodes that a launcher gets; 1 by default."""
    text = launch.option("nnodes", "num-machines", "num-nodes")
    if text is None:
        opaque = "$" in launch.options or launch.option("config-file") is not None
        return None if opaque else 1
    return script.number(text)


def expects_many(script: Script, launch: Launch) -> bool:
    """The launch line itself says that the run has more than one node."""
    text = launch.option("nnodes", "num-machines", "num-nodes") or ""
    number = script.number(text)
    if number is None and text and ":" not in text:
        return script.many_nodes  # of the job, by a name that the script gives it
    return (number or 1) > 1


def is_launcher(launch: Launch) -> bool:
    return launch.kind in LAUNCHERS


def has_hosts(launch: Launch) -> bool:
    """A deepspeed that starts the other nodes itself."""
    names = ("hostfile", "H", "launcher", "include", "i")
    return launch.kind == "deepspeed" and launch.option(*names) is not None


@TABLE.add("DT101", ERROR, pages.READ_THE_SCRIPT)
def launcher_per_rank(script: Script) -> Iterator[Problem]:
    r"""One launcher per rank instead of one per node

    torchrun, accelerate and deepspeed start the ranks of a node themselves. Started
    once per rank, each of them starts all ranks again.

    Cure:
        One task per node: #SBATCH --ntasks-per-node=1, or srun --ntasks=$SLURM_NNODES
        --ntasks-per-node=1.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
        srun -K torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-id=$SLURM_JOB_ID \
          --rdzv-endpoint=$head:$((20000 + SLURM_JOB_ID % 9999)) train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
        srun -K torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-id=$SLURM_JOB_ID \
          --rdzv-endpoint=$head:$((20000 + SLURM_JOB_ID % 9999)) train.py
    """
    for launch in script.launches:
        if not is_launcher(launch) or not launch.starter or launch.in_loop:
            continue
        step = script.step(launch)
        if (
            has_hosts(launch)
            or (step.per_node or 0) < 2
            or own_run_each(script, launch)
        ):
            continue
        ranks = ranks_of(script, launch)
        if ranks == 1:  # one torchrun for each rank: unusual, but right
            continue
        where = f"{step.per_node} on each node"
        if step.tasks and step.nodes:
            where = f"{step.tasks} tasks, {step.per_node} on each of {step.nodes} nodes"
            if step.nodes == 1:
                where = f"{step.tasks} tasks on one node"
        article = "an" if launch.kind == "accelerate" else "a"
        what = (
            f"{launch.starter} starts {where}, and every one is {article} {launch.name}"
        )
        if ranks:
            what += f" that starts {times(ranks, 'rank')}"
        if ranks and step.tasks:
            what += f", {step.tasks * ranks} in all"
        yield Problem(launch.line, what, cure_of_tasks(script, launch))


def cure_of_tasks(script: Script, launch: Launch) -> str:
    asked = script.asked(launch)
    if launch.starter == "srun" and "ntasks-per-node" in asked.options:
        cure = "#SBATCH --ntasks-per-node=1"
        cores, tasks = asked.cpus_per_task, script.step(launch).per_node
        if cores and tasks:
            cure += f" and #SBATCH --cpus-per-task={cores * tasks}"
        return cure
    if launch.starter == "srun":
        return 'srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 ...'
    if launch.starter == "mpirun":
        return (
            "--map-by ppr:1:node with Open MPI, --ppn 1 with MPICH, PALS or Intel MPI"
        )
    return "ask for one task on each host (mpiprocs=1, or ppn=1)"


def own_run_each(script: Script, launch: Launch) -> bool:
    """Every torchrun is a run of its own: rule DT102 speaks of it."""
    alone = launch.option("standalone") is not None
    return launch.kind in TORCHRUNS and (alone or nnodes_of(script, launch) == 1)


@TABLE.add("DT102", ERROR, pages.NUMBER_THEM)
def runs_of_their_own(script: Script) -> Iterator[Problem]:
    """Several launchers that don't know of each other

    A torchrun without --nnodes, or with --standalone, is a whole run of its own. Each
    trains everything, on the same data, and writes the same files.

    Cure:
        Tell each torchrun --nnodes and --rdzv-endpoint, or start only one.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        srun -K torchrun --standalone --nproc-per-node=4 train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --ntasks-per-node=1
        srun torchrun --standalone --nproc-per-node=4 train.py
    """
    for launch in script.launches:
        if launch.kind not in TORCHRUNS or launch.in_loop or launch.starter == "remote":
            continue
        step = script.step(launch)
        shared = launch.option("master-addr", "rdzv-endpoint", "node-rank")
        by_number = launch.inner and script.uses("SLURM_PROCID", "SLURM_NODEID")
        apart = by_number and not shared  # each task may train something else
        if (step.tasks or 1) < 2 or apart or not own_run_each(script, launch):
            continue
        told = "--standalone" if "standalone" in launch.options else "no --nnodes"
        if launch.option("nnodes") is not None:
            told = f"--nnodes={launch.options['nnodes']}"
        what = (
            f"{launch.starter} starts {step.tasks} torchruns, and with {told} each of "
            "them is a run of its own"
        )
        cure = "torchrun --nnodes=... --rdzv-backend=c10d --rdzv-endpoint=HOST:PORT ..."
        yield Problem(launch.line, what, cure)


@TABLE.add("DT103", ERROR, pages.WHAT_STARTS_WHAT)
def launcher_on_the_first_node(script: Script) -> Iterator[Problem]:
    r"""A launcher on the first node only

    A job script runs once, on the first node of the job. Without srun, mpirun or ssh
    nothing runs on the others, and the launcher waits for them.

    Cure:
        Start it on every node: srun torchrun ... under Slurm, pbsdsh or pbs_tmrsh
        under PBS.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
        torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-id=$SLURM_JOB_ID \
          --rdzv-endpoint=$head:$((20000 + SLURM_JOB_ID % 9999)) train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
        srun -K torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-id=$SLURM_JOB_ID \
          --rdzv-endpoint=$head:$((20000 + SLURM_JOB_ID % 9999)) train.py
    """
    yield from launched_by_salloc(script)
    if script.dialect not in ("slurm", "pbs") or not script.many_nodes:
        return
    if any(launch.starter and launch.in_loop for launch in script.launches):
        return  # that starts the other nodes, and this one is the first
    for launch in script.launches:
        alone = not launch.starter and not launch.in_loop and not started_by(script)
        if not alone or not is_launcher(launch) or has_hosts(launch):
            continue
        if launch.command.captured or "function" in launch.command.blocks:
            continue
        if not expects_many(script, launch):
            continue
        what = f"`{launch.name}` runs on the first of {script.nodes} nodes only"
        start = "srun" if script.dialect == "slurm" else "pbs_tmrsh HOST"
        cure = f"{start} {' '.join(t.text for t in launch.tokens[:3])} ..."
        if launch.kind == "deepspeed":
            cure = (
                "deepspeed --hostfile=FILE ..., with a line `HOST slots=GPUS` per node"
            )
        yield Problem(launch.line, what, cure)


def launched_by_salloc(script: Script) -> Iterator[Problem]:
    """salloc runs its command once, on the login node or the first of its nodes."""
    for command in script.commands:
        if base(command.name) != "salloc" or command.captured:
            continue
        tokens = [t for w in command.words for t in script.variables.tokens(w)]
        options, at = slurm_options([token.text for token in tokens[1:]], "salloc")
        nodes = script.number(options.get("nodes"))
        for launch in launches_of(command, tokens[1 + at :], script.variables):
            text = launch.option("nnodes", "num-machines") or ""
            many = (script.number(text) or 1) > 1 or is_one_of(text, NODES)
            alone = not launch.starter and is_launcher(launch) and not has_hosts(launch)
            if alone and many and nodes and nodes > 1:
                words = " ".join(token.text for token in launch.tokens[:3])
                what = f"salloc runs `{launch.name}` once, and not on {nodes} nodes"
                yield Problem(launch.line, what, f"srun {words} ...")


def started_by(script: Script) -> bool:
    """The script starts itself, or a copy, on the other nodes."""
    return bool(
        re.search(
            r"\b(srun|mpirun|mpiexec|pbsdsh)\b.*\$\{?0|BASH_SOURCE|\bCommand=",
            script.text,
        )
    )


@TABLE.add("DT104", WARNING, pages.WHAT_STARTS_WHAT)
def python_on_the_first_node(script: Script) -> Iterator[Problem]:
    """A program on the first node only

    A job script runs once, on the first node. The other nodes of the job stay idle
    unless something starts processes there.

    Cure:
        srun python ..., or ask for one node.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=4
        #SBATCH --ntasks-per-node=4
        python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=4
        #SBATCH --ntasks-per-node=4
        srun -K python train.py
    """
    if script.dialect not in ("slurm", "pbs") or not script.many_nodes:
        return
    body = "\n".join(line for line in script.lines if not line.lstrip().startswith("#"))
    if SPREADS.search(body):
        return
    for launch in script.launches:
        one_node = launch.kind == "python" or nnodes_of(script, launch) == 1
        if not one_node or launch.command.captured or has_hosts(launch):
            continue
        program = launch.program[0] if launch.program else launch.name
        what = f"`{base(program)}` runs once, on the first of {script.nodes} nodes"
        start = "srun" if script.dialect == "slurm" else "mpirun"
        cure = f"{start} python {program} ..., or ask for one node"
        if launch.kind != "python":
            cure = f"one {launch.name} on each node, with --nnodes={script.nodes}"
        yield Problem(launch.line, what, cure)
        return


@TABLE.add("DT105", ERROR, pages.READ_THE_SCRIPT)
def overruled_tasks(script: Script) -> Iterator[Problem]:
    """srun's --ntasks-per-node is overruled by the job's number of tasks

    sbatch hands SLURM_NTASKS to srun, and a number of tasks beats a number per node:
    srun warns "can't honor --ntasks-per-node" and starts them all.

    Cure:
        Say the number of tasks, too: srun --ntasks="$SLURM_NNODES"
        --ntasks-per-node=1.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K --ntasks-per-node=1 ./on_each_node.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K --ntasks="$SLURM_NNODES" --ntasks-per-node=1 ./on_each_node.sh
    """
    for launch in script.launches:
        options = launch.starter_options
        if launch.starter != "srun" or "ntasks" in options or "$" in options:
            continue
        own = script.number(options.get("ntasks-per-node"))
        nodes, tasks = script.nodes, script.tasks
        if "nodes" in options:
            nodes = script.number(options["nodes"])
        if not own or not nodes or tasks is None or own * nodes == tasks:
            continue
        if launch.tokens and base(launch.tokens[0].text) in ONCE_OR_OFTEN:
            continue
        what = (
            f"srun ignores `--ntasks-per-node={own}`, for the job has {tasks} tasks: "
            f"it starts {tasks}, not {own * nodes}"
        )
        count = '"$SLURM_NNODES"' if own == 1 else str(own * nodes)
        cure = f"srun --ntasks={count} --ntasks-per-node={own} ..."
        yield Problem(launch.command.line, what, cure)


@TABLE.add("DT106", ERROR, pages.READ_THE_SCRIPT)
def wrong_number_of_launchers(script: Script) -> Iterator[Problem]:
    r"""--nnodes isn't the number of launchers that start

    The launchers wait until exactly --nnodes of them have joined. With too few they
    time out. Any extra launcher waits until the run ends, and then fails.

    Cure:
        --nnodes=$SLURM_NNODES, with one launcher on each node.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=4
        #SBATCH --ntasks-per-node=1
        head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
        srun -K torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-id=$SLURM_JOB_ID \
          --rdzv-endpoint=$head:$((20000 + SLURM_JOB_ID % 9999)) train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=4
        #SBATCH --ntasks-per-node=1
        head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
        srun -K torchrun --nnodes=$SLURM_NNODES --nproc-per-node=4 \
          --rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID \
          --rdzv-endpoint=$head:$((20000 + SLURM_JOB_ID % 9999)) train.py
    """
    for launch in script.launches:
        kinds = ("torchrun", "launch", "accelerate")
        if launch.kind not in kinds or launch.in_loop or launch.starter == "remote":
            continue
        text = launch.option("nnodes", "num-machines")
        step, told = script.step(launch), script.number(text)
        commented = commented_nodes(script)
        if commented and step.tasks is None and told and told > 1:
            yield one_node_only(launch, told, commented)
            continue
        if not launch.starter or not told or step.tasks is None or told == step.tasks:
            continue
        if ":" in (text or "") or told == 1 or (step.per_node or 1) > 1:
            continue  # elastic; runs of their own; DT101 speaks of it
        what = (
            f"{launch.starter} starts {times(step.tasks, launch.name)}, each expects "
            f"{told} ({option_text(launch, 'nnodes', 'num-machines')})"
        )
        cure = f"--nnodes=$SLURM_NNODES, and {times(told, 'node')} in the job"
        if script.dialect == "slurm":
            cure = "--nnodes=$SLURM_NNODES"
        if {"nodes", "ntasks"} & set(launch.starter_options):
            cure = f"--nnodes={step.tasks}, or one launcher on each node of the job"
        if script.parts:
            if len(launchers_of(script)) > 1:
                continue  # maybe one run in several components
            what += f", in component {script.component(launch)} of the job"
            cure = f"srun --het-group=N ..., with {times(told, 'task')} in component N"
            fitting = [n for n, p in enumerate(script.parts) if p.all_tasks == told]
            if len(fitting) == 1:
                cure = f"srun --het-group={fitting[0]} ..."
        if launch.kind == "accelerate":
            cure = cure.replace("nnodes", "num_machines")
        yield Problem(launch.line_of("nnodes", "num-machines"), what, cure)


def launchers_of(script: Script) -> list[Launch]:
    return [launch for launch in script.launches if is_launcher(launch)]


def commented_nodes(script: Script) -> int | None:
    """The line of ``# SBATCH --nodes=4``, if no directive asks for nodes."""
    if script.dialect != "slurm" or {"nodes", "ntasks"} & set(script.resources.options):
        return None
    for number, line in enumerate(script.lines, 1):
        switched_off = re.match(r"#\s+SBATCH\s+(-N|--nodes\b)", line)
        if switched_off and number not in script.embedded:
            return number
    return None


def one_node_only(launch: Launch, told: int, line: int) -> Problem:
    option = option_text(launch, "nnodes", "num-machines")
    what = (
        f"the job has one node, because line {line} is a comment, and {launch.name} "
        f"expects {told} ({option})"
    )
    return Problem(
        launch.line_of("nnodes", "num-machines"), what, f"#SBATCH --nodes={told}"
    )


def option_text(launch: Launch, *names: str) -> str:
    name = next(name for name in names if name in launch.options)
    return f"--{name}={launch.options[name]}"


@TABLE.add("DT107", ERROR, pages.WHAT_STARTS_WHAT)
def number_of_the_task(script: Script) -> Iterator[Problem]:
    r"""A number of the task, filled in by the job script

    The shell that reads a variable replaces it. Outside single quotes that's the job
    script's shell on the first node, where SLURM_NODEID, SLURM_PROCID and
    SLURM_LOCALID are 0, so every task gets 0.

    Cure:
        srun bash -c 'torchrun --node-rank=$SLURM_NODEID ...', in single quotes; or
        --rdzv-backend=c10d, which needs no node rank.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
        srun -K bash -c "torchrun --nnodes=2 --nproc-per-node=4 \
          --node-rank=$SLURM_NODEID --master-addr=$head \
          --master-port=$((20000 + SLURM_JOB_ID % 9999)) train.py"

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        export head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
        srun -K bash -c 'torchrun --nnodes=2 --nproc-per-node=4 \
          --node-rank=$SLURM_NODEID --master-addr=$head \
          --master-port=$((20000 + SLURM_JOB_ID % 9999)) train.py'
    """
    if script.dialect != "slurm" or started_by(script):
        return
    yield from numbers_in_launches(script)
    yield from numbers_in_variables(script)


def numbers_in_launches(script: Script) -> Iterator[Problem]:
    """Those in the words of a launch, or in the text that it gets as input."""
    told: set[int] = set()
    for launch in script.launches:
        if may_be_filled_in(script, launch):
            continue
        files = [launch.file] if launch.file else []
        for word in [*launch.command.words, *files]:
            match = TASK_VARIABLE.search(word.live)
            if match and differs(script, match[1]) and word.line not in told:
                line = word.line + line_of_match(word.raw, match[0])
                told.add(word.line)
                what, cure = replaced(match[1], launch)
                if word is launch.file:
                    cure = f"<<'END', in quotes, or \\${match[1]}"
                yield Problem(line, what, cure)


def may_be_filled_in(script: Script, launch: Launch) -> bool:
    """A number of the task that the job script fills in does no harm here."""
    if launch.kind == "torchrun" and launch.option("rdzv-backend") == "c10d":
        return True  # torchrun ignores --node-rank then
    if launch.starter:
        return script.step(launch).tasks == 1  # one task, and its number is 0
    # srun may run the function in each task
    return launch.in_loop or "function" in launch.command.blocks


def numbers_in_variables(script: Script) -> Iterator[Problem]:
    """Those that the job script stores for its ranks."""
    for name, assignments in script.variables.found.items():
        for assignment in assignments:
            value = assignment.word.value
            if QUOTED_HEREDOC.search(value) or "c10d" in value:
                continue
            match = TASK_VARIABLE.search(assignment.word.live)
            named = name in RANK_NAMES | VISIBLE and reads_the_environment(script)
            named = named or names_a_launcher(value) or is_launched_with(script, name)
            inside = "function" in script_blocks(script, assignment.line)
            if match and named and not inside and differs(script, match[1]):
                what = (
                    f"`{name}` is set to `${match[1]}` once, by the job script, where "
                    "it's 0, so every task gets 0"
                )
                cure = f"set it in each task: srun bash -c '... ${match[1]} ...'"
                if is_text_of_a_shell(script, name):
                    cure = f"\\${match[1]}, which the shell of each task replaces"
                line = assignment.line + line_of_match(assignment.word.raw, match[0])
                yield Problem(line, what, cure)


def is_text_of_a_shell(script: Script, name: str) -> bool:
    """``bash -c "$CMD"``: each task runs a shell that reads the text once more."""
    runs_it = rf"\bsrun\b.*\s-[a-z]*c\s+\"\$\{{?{name}\}}?\""
    return bool(re.search(runs_it, script.text.replace("\\\n", " ")))


def is_launched_with(script: Script, name: str) -> bool:
    """A launcher that srun starts gets the value of this variable as its node rank."""
    for launch in script.launches:
        written = launch.as_written
        given = written.get("node-rank", "") + written.get("machine-rank", "")
        static = launch.option("rdzv-backend") != "c10d"
        if launch.starter and static and re.search(rf"\$\{{?{name}\b", given):
            return True
    return False


def reads_the_environment(script: Script) -> bool:
    """Several tasks of a program, which find their numbers in the environment.

    A launcher doesn't read them: it sets RANK and LOCAL_RANK for each of its ranks.
    """
    for launch in script.launches:
        program = base(launch.tokens[0].text) if launch.tokens else ""
        reads = launch.kind == "python" or program not in LOOKS_ONLY
        if launch.kind in LAUNCHERS or not launch.starter or not reads:
            continue
        if script.step(launch).tasks != 1:
            return True
    return False


def line_of_match(raw: str, text: str) -> int:
    match = re.search(rf"(?<!\\){re.escape(text)}", raw)
    return raw[: match.start()].count("\n") if match else 0


def script_blocks(script: Script, line: int) -> tuple[str, ...]:
    return next((c.blocks for c in script.commands if c.line == line), ())


def replaced(name: str, launch: Launch) -> tuple[str, str]:
    what = (
        f"the job script's shell replaces `${name}` before {launch.starter or 'it'} "
        "starts anything, so every task gets 0"
    )
    cure = f"srun bash -c '... ${name} ...', in single quotes (or \\${name} in double)"
    return what, cure


def differs(script: Script, name: str) -> bool:
    """Two tasks of the job have different values of this variable."""
    asked = script.resources
    if name == "SLURM_NODEID":
        return script.many_nodes
    many_tasks = (asked.tasks or asked.tasks_per_node or 1) > 1
    if name == "SLURM_LOCALID" and asked.tasks and asked.tasks == script.nodes:
        return False  # one task on each node
    return many_tasks or (name == "SLURM_PROCID" and script.many_nodes)


def names_a_launcher(text: str) -> bool:
    words = (
        r"\b(torchrun|torch\.distributed\.(run|launch)|accelerate launch|node.rank)\b"
    )
    return bool(re.search(words, text))


@TABLE.add("DT108", ERROR, pages.PBS_COPIED)
def pbs_nodeid(script: Script) -> Iterator[Problem]:
    """PBS_NODEID, which PBS doesn't set

    OpenPBS and PBS Pro set PBS_NODENUM in the tasks of pbsdsh, and no PBS_NODEID. An
    empty --node-rank ends torchrun with `invalid int value: ''`.

    Cure:
        --rdzv-backend=c10d, which needs no node rank; or $PBS_NODENUM, in single
        quotes in a task of pbsdsh.

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=8
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        pbsdsh -- bash -lc 'cd $PBS_O_WORKDIR && ./run.sh $PBS_NODEID'

    Good:
        #!/bin/bash
        #PBS -l select=2:ncpus=8
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        pbsdsh -- bash -lc 'cd $PBS_O_WORKDIR && ./run.sh $PBS_NODENUM'
    """
    if script.variables.sets("PBS_NODEID"):
        return
    for number, line in enumerate(script.lines, 1):
        code = line.lstrip()
        if not code.startswith("#") and re.search(
            r"\$(PBS_NODEID\b|\{PBS_NODEID\})", code
        ):
            yield Problem(number, "PBS sets no `PBS_NODEID`, so it's empty")


@TABLE.add("DT109", ERROR, pages.SLURM_MISTAKES)
def unset_variable(script: Script) -> Iterator[Problem]:
    """A Slurm variable that this job doesn't have

    Slurm sets some variables only if the job asks with the option itself:
    SLURM_NTASKS_PER_NODE needs --ntasks-per-node, and --gres=gpu:4 sets no
    SLURM_GPUS_PER_NODE. The launcher gets an empty word.

    Cure:
        Add the directive, or give a default: ${SLURM_CPUS_PER_TASK:-1}.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        srun torchrun --standalone --nproc-per-node=$SLURM_GPUS_PER_NODE train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gpus-per-node=4
        srun torchrun --standalone --nproc-per-node=$SLURM_GPUS_PER_NODE train.py
    """
    if script.dialect != "slurm" or script.resources.mixed:
        return
    given = set(script.resources.options)
    for launch in script.launches:
        given |= set(launch.starter_options)
    told = set()
    for word in used_words(script):
        for match in re.finditer(r"\$(?:(SLURM_\w+)|\{(SLURM_\w+)\})", word.raw):
            name = match[1] or match[2]
            option = ONLY_WITH.get(name)
            if option is None or option in given or name in told:
                continue
            if is_part_of_a_name(word.raw, match):
                continue
            if script.variables.sets(name) or asks_for_it(script, name):
                continue
            told.add(name)
            what = f"`{match[0]}` is empty: no directive asks for --{option}"
            cure = f"#SBATCH --{option}=...   (one more directive)"
            line = word.line + word.raw[: match.start()].count("\n")
            yield Problem(line, what, cure)


def is_part_of_a_name(raw: str, match: re.Match) -> bool:
    """``runs/g$GPUS-j$JOB`` is a name without the number, too: nothing breaks."""
    before, behind = raw[: match.start()], raw[match.end() :]
    if re.search(r"(^|\s)-[A-Za-z]$", before):
        return False  # -c$SLURM_CPUS_PER_TASK
    return bool(re.search(r"[\w./]$|[\w]-$", before) or re.match(r"[\w./]|-\w", behind))


def used_words(script: Script) -> list[Word]:
    """What is launched or assigned; an echo or a test of an empty word does no harm."""
    launched = {id(launch.command) for launch in script.launches}
    words: list[Word] = []
    for command in script.commands:
        words += [assignment.word for assignment in command.assignments]
        if id(command) in launched:
            words += command.words
    words += [each for word in words for each in word.array or []]
    return words


def asks_for_it(script: Script, name: str) -> bool:
    """The script finds out whether the variable is set: ``-z``, ``:=``, ``:?``."""
    guards = (
        rf"-[nzv]\s+\"?\$?\{{?{name}\b",
        rf"\$\{{{name}:?[-=?+]",
        rf"\[\[?\s[^]\n]*\$\{{?{name}\b",
    )
    return any(re.search(guard, script.text) for guard in guards)


@TABLE.add("DT110", ERROR, pages.NUMBER_RANKS)
def too_many_ranks(script: Script) -> Iterator[Problem]:
    """More ranks than GPUs on a node

    A rank takes the GPU with the number of its local rank. The rank beyond the last
    GPU ends with "invalid device ordinal".

    Cure:
        As many ranks as the node has GPUs.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:2
        torchrun --standalone --nproc-per-node=4 train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        torchrun --standalone --nproc-per-node=4 train.py
    """
    for launch in script.launches:
        asked = script.asked(launch)
        if launch.kind not in TORCHRUNS or script.dialect not in ("slurm", "pbs"):
            continue
        step = script.step(launch)
        shared = (step.per_node or 1) > 1 and asked.gpus_per_task is None
        if shared or launch.in_loop:
            continue
        ranks = ranks_of(script, launch) or ranks_by_default(script, launch)
        gpus, where = asked.gpus_per_node, "each node"
        options = launch.starter_options
        if {"gres", "gpus-per-node", "gpus", "gpus-per-task"} & set(options):
            continue
        if (
            asked.gpus_per_task is not None
            and gpus is None
            and launch.starter == "srun"
        ):
            gpus, where = asked.gpus_per_task, "each task"
        if script.dialect == "slurm" and asked.value("gpus") and gpus is None:
            continue
        if ranks and gpus and ranks > gpus and not script.uses("gloo"):
            what = (
                f"torchrun starts {ranks} ranks, and {where} has {times(gpus, 'GPU')}"
            )
            cure = f"--nproc-per-node={gpus}, or ask for {ranks} GPUs"
            yield Problem(launch.line_of("nproc-per-node"), what, cure)


@TABLE.add("DT111", WARNING, pages.NUMBER_RANKS)
def one_gpu_per_task(script: Script) -> Iterator[Problem]:
    r"""One GPU per task, and a device number per task

    With --gpus-per-task=1 or --gpu-bind=single:1 a task sees one GPU, and its number
    is 0. cuda:$SLURM_LOCALID is an "invalid device ordinal" in all other tasks.

    Cure:
        --gres=gpu:N for the node; or use cuda:0 in every task.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --ntasks-per-node=4
        #SBATCH --gpus-per-task=1
        srun -K bash -c 'LOCAL_RANK=$SLURM_LOCALID RANK=$SLURM_PROCID python \
          train.py'

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --ntasks-per-node=4
        #SBATCH --gres=gpu:4
        srun -K bash -c 'LOCAL_RANK=$SLURM_LOCALID RANK=$SLURM_PROCID python \
          train.py'
    """
    asked = script.resources
    bound = asked.options.get("gpus-per-task") or asked.options.get("gpu-bind")
    given = [each.starter_options for each in script.launches]
    text = asked.value("gpus-per-task") or next(
        (o["gpus-per-task"] for o in given if "gpus-per-task" in o), ""
    )
    binds = [asked.value("gpu-bind"), *(o.get("gpu-bind", "") for o in given)]
    single = text in ("1",) or any(bind.startswith("single:1") for bind in binds)
    unbound = any(bind in ("none", "closest") for bind in binds)
    match = re.search(r"LOCAL_?RANK\w*[= ]\\?\$\{?SLURM_LOCALID", script.text)
    several = any((script.step(each).per_node or 1) > 1 for each in script.launches)
    if not single or unbound or match is None or not several or script.parts:
        return
    line = script.text[: match.start()].count("\n") + 1
    asked_by = f"--gpus-per-task={text}" if text else "--gpu-bind=single:1"
    where = f" (line {bound.line})" if bound else ""
    what = (
        f"with `{asked_by}`{where} each task sees one GPU, number 0; its LOCAL_RANK "
        "is SLURM_LOCALID"
    )
    yield Problem(line, what)


@TABLE.add("DT112", WARNING, pages.FEED_THE_DEVICE)
def too_few_cores(script: Script) -> Iterator[Problem]:
    """Fewer cores than ranks, or than data workers

    Ranks and the workers of their data loaders share the cores of their task. With
    too few, the GPUs wait for data.

    Cure:
        #SBATCH --cpus-per-task: ranks of the task x (1 + data workers); or fewer
        workers.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        #SBATCH --cpus-per-task=4
        srun -c 4 torchrun --standalone --nproc-per-node=4 train.py --num-workers=8

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        #SBATCH --cpus-per-task=36
        export OMP_NUM_THREADS=1
        srun -c 36 torchrun --standalone --nproc-per-node=4 train.py --num-workers=8
    """
    if script.dialect != "slurm" or script.resources.exclusive:
        return
    for launch in script.launches:
        cores = script.asked(launch).cpus_per_task
        if cores is None:
            continue
        own = script.number(launch.starter_options.get("cpus-per-task"))
        if own:
            cores = own
        step = script.step(launch)
        ranks = ranks_of(script, launch) if launch.kind in TORCHRUNS else 1
        if not ranks or launch.kind == "other" or (step.per_node or 1) > 1 < ranks:
            continue
        if "ntasks" in launch.starter_options and not own:
            continue  # fewer tasks than the job's have the cores of all
        workers = workers_of(launch)
        if workers and workers * ranks > cores:
            what = (
                f"{times(ranks, 'rank')} with {workers} data workers each share "
                f"{times(cores, 'core')} (--cpus-per-task={cores})"
            )
            cure = f"#SBATCH --cpus-per-task={ranks * (workers + 1)}"
            fewer = cores // ranks - 1
            if fewer > 0:
                cure += f", or {times(fewer, 'data worker')} for each rank"
            elif fewer == 0:
                cure += ", or no data workers"
            yield Problem(launch.line, what, cure)
        elif ranks > cores:
            what = (
                f"{ranks} ranks share {times(cores, 'core')} (--cpus-per-task={cores})"
            )
            yield Problem(launch.line, what, f"#SBATCH --cpus-per-task={ranks}")


def workers_of(launch: Launch) -> int | None:
    for text, after in pairs(launch.program):
        match = WORKERS.fullmatch(text)
        if match:
            number = match[1] or after
            return int(number) if number.isdigit() else None
    return None


@TABLE.add("DT113", WARNING, pages.READ_THE_SCRIPT)
def cores_not_taken_over(script: Script) -> Iterator[Problem]:
    """srun ignores the job's --cpus-per-task

    Since Slurm 22.05, srun no longer reads the --cpus-per-task of sbatch, so a step
    gets one core for each task unless you say it again. A site may bind each task to
    that core.

    Cure:
        export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK, or srun
        --cpus-per-task=$SLURM_CPUS_PER_TASK.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --cpus-per-task=8
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --cpus-per-task=8
        export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
        srun -K python train.py
    """
    if script.dialect != "slurm" or script.resources.exclusive:
        return
    if script.uses("SRUN_CPUS_PER_TASK", "SLURM_CPU_BIND"):
        return
    for launch in script.launches:
        options, asked = launch.starter_options, script.asked(launch)
        cores = asked.cpus_per_task
        if not cores or cores < 2 or hides_its_component(script, launch):
            continue
        said = {
            "cpus-per-task",
            "cpu-bind",
            "$",
            "exclusive",
            "cpu_bind",
            "cpus-per-gpu",
        }
        if launch.starter != "srun" or said & set(options) or launch.kind == "other":
            continue
        what = (
            f"srun ignores the `--cpus-per-task={cores}` of line "
            f"{asked.line('cpus-per-task')}"
        )
        component = script.component(launch)
        if component is not None:
            cure = f"srun --het-group={component} --cpus-per-task={cores} ..."
            yield Problem(launch.command.line, what, cure)
            continue
        cure = "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK   (above the srun)"
        yield Problem(launch.command.line, what, cure)
        return


def hides_its_component(script: Script, launch: Launch) -> bool:
    """A step that should maybe run in another component than the first."""
    told = {"het-group", "pack-group"} & set(launch.starter_options)
    return bool(script.parts) and not told


@TABLE.add("DT114", WARNING, pages.RENDEZVOUS)
def deprecated_launcher(script: Script) -> Iterator[Problem]:
    """torch.distributed.launch

    It's deprecated, and adds an argument to those of the program: --local-rank=N, and
    before torch 2.0 --local_rank=N. A program that knows the other spelling ends with
    "unrecognized arguments: --local-rank=0". torchrun adds none.

    Cure:
        torchrun; the program reads os.environ["LOCAL_RANK"] in place of --local_rank.

    Bad:
        python -m torch.distributed.launch --use-env --nproc-per-node=4 train.py

    Good:
        torchrun --standalone --nproc-per-node=4 train.py
    """
    for launch in script.launches:
        if launch.kind == "launch":
            what = "`python -m torch.distributed.launch` is the old name of torchrun"
            cure = "torchrun ..., with the same options"
            if "use-env" not in launch.options:
                what += "; since torch 2.0 it adds `--local-rank=N` to the arguments"
                cure += (
                    '; a program with --local_rank reads os.environ["LOCAL_RANK"] '
                    "instead"
                )
            yield Problem(launch.line, what, cure)


@TABLE.add("DT115", WARNING, pages.RENDEZVOUS)
def local_rank_argument(script: Script) -> Iterator[Problem]:
    """The local rank as an argument of the program

    A launcher starts several ranks with the same command line, so a number on it is the
    same for all of them. torchrun sets LOCAL_RANK in the environment of each.

    Cure:
        Read os.environ["LOCAL_RANK"] in the program, and pass no --local_rank.

    Bad:
        torchrun --standalone --nproc-per-node=4 train.py --local_rank 0

    Good:
        torchrun --standalone --nproc-per-node=4 train.py
    """
    for launch in script.launches:
        if launch.kind not in TORCHRUNS:
            continue
        for text, after in pairs(launch.program):
            option, _, attached = text.partition("=")
            if option not in ("--local-rank", "--local_rank"):
                continue
            value = attached or after
            if value.isdigit() or TASK_VARIABLE.match(value):
                what = f"all ranks of a node get the same `{option} {value}`"
                yield Problem(launch.line, what, f"remove `{text}`")


@TABLE.add("DT116", ERROR, pages.PBS_TASKS)
def bare_task(script: Script) -> Iterator[Problem]:
    r"""pbsdsh starts a task without the script's environment

    A task of pbsdsh starts in the home folder with a short PATH, and has nothing that
    the job script has exported, loaded or activated.

    Cure:
        pbsdsh -- bash -lc 'cd "$PBS_O_WORKDIR" && source .venv/bin/activate &&
        torchrun ...'

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=1
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        head=$(head -n 1 $PBS_NODEFILE)
        pbsdsh -- torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-endpoint=$head:$((20000 + ${PBS_JOBID%%.*} % 9999)) \
          --rdzv-id=$PBS_JOBID \
          train.py | tee log; grep -q 'exit status' log && exit 1

    Good:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=1
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        said=$(pbsdsh -- bash -lc 'cd $PBS_O_WORKDIR && ./task.sh')
        [[ $said != *"exit status"* ]]
    """
    for launch in script.launches:
        if launch.starter != "pbsdsh" or not launch.tokens:
            continue
        program = launch.tokens[0].text
        if launch.shell:
            continue
        known = launch.kind != "other" or program.endswith(".sh")
        bare = not program.startswith(("/", "$", "~", "`")) and "/bin/" not in program
        if known and bare:
            what = f"a task of pbsdsh finds no `{program}`: PATH is short there"
            if "/" in program or program.endswith(".sh"):
                what = f"a task of pbsdsh looks for `{program}` in the home folder"
            yield Problem(launch.line, what)


@TABLE.add("DT117", WARNING, pages.PBS_TEN_LINES)
def home_folder(script: Script) -> Iterator[Problem]:
    """A PBS job that stays in the home folder

    PBS starts a job script in the home folder, not where you typed qsub.

    Cure:
        cd "$PBS_O_WORKDIR"

    Bad:
        #!/bin/bash
        #PBS -l select=1:ncpus=8
        python train.py

    Good:
        #!/bin/bash
        #PBS -l select=1:ncpus=8
        cd "$PBS_O_WORKDIR"
        python train.py
    """
    if script.dialect != "pbs":
        return
    moved = {"d", "w", "l wd"} & set(script.resources.options)
    if moved or re.search(
        r"(?m)(^|[;&|({]\s*)\s*(cd|pushd)\s|PBS_O_WORKDIR|PBS_JOBFS", script.text
    ):
        return
    for launch in script.launches:
        program = launch.program[0] if launch.program else ""
        if program.endswith(".py") and not program.startswith(("/", "$", "~")):
            what = f"PBS looks for `{program}` in your home folder"
            yield Problem(launch.line, what, 'cd "$PBS_O_WORKDIR"   (above this line)')
            return


@TABLE.add("DT118", ERROR, pages.NUMBER_RANKS)
def wrong_world_size(script: Script) -> Iterator[Problem]:
    """WORLD_SIZE isn't the number of tasks

    Every rank waits until WORLD_SIZE ranks have joined. With fewer tasks the job
    waits until it times out; with more, some ranks are refused.

    Cure:
        export WORLD_SIZE=$SLURM_NTASKS

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        export WORLD_SIZE=4
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        export WORLD_SIZE=$SLURM_NTASKS
        srun -K python train.py
    """
    if script.dialect != "slurm":
        return
    steps = [launch for launch in script.launches if launch.kind == "python"]
    for launch in steps:
        tasks = script.step(launch).tasks
        per_rank = launch.starter == "srun"
        assignment = world_size_of(script, launch)
        if assignment is None or not per_rank:
            continue
        text = script.variables.fill(assignment.word, assignment.line - 1)
        size = script.number(text.partition("=")[2])
        if spawns_ranks(script, launch, size) or (script.parts and len(steps) > 1):
            continue  # its own ranks, or maybe one run in several components
        if size and tasks and size != tasks:
            what = f"WORLD_SIZE is {size}, and srun starts {times(tasks, 'task')}"
            yield Problem(assignment.line, what, "export WORLD_SIZE=$SLURM_NTASKS")
            return


def world_size_of(script: Script, launch: Launch) -> Assignment | None:
    """What sets WORLD_SIZE for a launch; None if a shell in between hides it.

    SLURM_NTASKS in the shell of a task is the number of tasks of that step.
    """
    own = [each for command in launch.inner for each in command.assignments]
    sizes = [each for each in own if each.name == "WORLD_SIZE"]
    if sizes:
        text = sizes[-1].word.value.partition("=")[2]
        return sizes[-1] if text.isdigit() or is_one_of(text, NODES) else None
    if launch.inner and not numbers_its_rank(launch):
        return None
    return script.variables.last("WORLD_SIZE", len(script.lines))


def numbers_its_rank(launch: Launch) -> bool:
    """Each task is one rank: ``bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=...'``."""
    own = [each for command in launch.inner for each in command.assignments]
    numbered = {a.name for a in own if TASK_VARIABLE.search(a.word.value)}
    return {"RANK", "LOCAL_RANK"} <= numbered


def spawns_ranks(script: Script, launch: Launch, size: int | None) -> bool:
    """One task on each node, which may start a rank for each of its GPUs itself."""
    if numbers_its_rank(launch):
        return False
    step, gpus = script.step(launch), script.asked(launch).gpus_per_node
    if step.per_node != 1 or not step.tasks or not size or size % step.tasks:
        return False
    return gpus is None or gpus == size // step.tasks


@TABLE.add("DT119", ERROR, pages.WHAT_STARTS_WHAT)
def lightning_numbers(script: Script) -> Iterator[Problem]:
    """Lightning gets other numbers than Slurm

    Lightning compares its devices and nodes with the tasks of the job, and refuses to
    start if they differ.

    Cure:
        --ntasks-per-node = trainer.devices, and --nodes = trainer.num_nodes.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=2
        srun -K python train.py fit --trainer.devices=4 --trainer.num_nodes=2

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K python train.py fit --trainer.devices=4 --trainer.num_nodes=2
    """
    directives = {"devices": "ntasks-per-node", "num_nodes": "nodes"}
    for launch in script.launches:
        asked = script.asked(launch)
        pairs = {"devices": asked.tasks_per_node, "num_nodes": asked.all_nodes}
        if launch.kind != "python" or launch.starter != "srun" or launch.in_loop:
            continue
        if {"nodes", "ntasks", "ntasks-per-node", "$"} & set(launch.starter_options):
            continue
        words = " ".join(launch.program)
        for name, number in pairs.items():
            match = re.search(rf"(?:--)?\btrainer\.{name}[= ](\S+)", words)
            told = script.number(match[1]) if match else None
            if told and number and told != number:
                option = directives[name]
                what = f"`trainer.{name}={told}`, and the job has --{option}={number}"
                cure = f"#SBATCH --{option}={told}"
                cores = asked.cpus_per_task
                if name == "devices" and cores and cores > 1:
                    each = max(1, cores * number // told)
                    cure += f" and #SBATCH --cpus-per-task={each}"
                yield Problem(launch.line, what, cure)


@TABLE.add("DT120", ERROR, pages.WHAT_STARTS_WHAT)
def variable_that_no_shell_replaces(script: Script) -> Iterator[Problem]:
    r"""A variable in single quotes, and no shell that replaces it

    Single quotes keep a variable for the shell of the task. srun and mpirun start the
    program itself, without a shell, so it gets the name and not the value.

    Cure:
        srun bash -c 'torchrun --node-rank=$SLURM_NODEID ...'

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        export head=$(hostname) port=$((20000 + SLURM_JOB_ID % 9999))
        srun -K torchrun --nnodes=2 --nproc-per-node=4 --node-rank='$SLURM_NODEID' \
          --master-addr=$head --master-port=$port train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        export head=$(hostname) port=$((20000 + SLURM_JOB_ID % 9999))
        srun -K bash -c 'torchrun --nnodes=2 --nproc-per-node=4 \
          --node-rank=$SLURM_NODEID --master-addr=$head --master-port=$port train.py'
    """
    for launch in script.launches:
        if not is_launcher(launch) or launch.shell:
            continue
        for token in launch.tokens:
            quoted = "".join(p.text for p in token.word.pieces if not p.live)
            match = LITERAL.search(quoted)
            if match and token.text in launch_options(launch):
                what = f"no shell replaces `{match[0]}` in `{token.word.raw}`"
                yield Problem(token.line, what)


def launch_options(launch: Launch) -> set[str]:
    """The words of a launcher before its program."""
    program = launch.program[0] if launch.program else ""
    texts = [token.text for token in launch.tokens]
    end = texts.index(program) if program in texts else len(texts)
    return set(texts[:end])
