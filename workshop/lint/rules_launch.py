"""Rules about launchers: where each starts, how often, and what of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .counts import (
    LOOKS_ONLY,
    TASK_VARIABLE,
    TORCHRUNS,
    expects_many,
    is_launcher,
    nnodes_of,
    ranks_of,
    started_by,
    times,
)
from .directives import slurm_options
from .launches import Launch, base, launches_of, pairs
from .rule import ERROR, WARNING, Problem, Table
from .script import NODES, Script, is_one_of
from .shell import Command

TABLE = Table()
# What may start processes on other nodes.
SPREADS = re.compile(
    r"\b(srun|mpirun|mpiexec\S*|pbsdsh|pbs_tmrsh|ssh|pdsh|clush|ray|dask|aprun)\b"
)
OWN_PER_NODE = ("--ppn", "-ppn", "-npernode", "--npernode", "-N", "-perhost")
BY_NODE = re.compile(r"SLURM_(?:NODEID|PROCID)|PBS_NODENUM")
ONCE_OR_OFTEN = LOOKS_ONLY - {"cp", "tar", "rsync"}  # several at once do no harm


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
        what = f"{launch.started_with} starts {where}, and every one is "
        what += f"{article} {launch.name}"
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
        return cure_of_mpirun(script, launch)
    return "ask for one task on each host (mpiprocs=1, or ppn=1)"


def cure_of_mpirun(script: Script, launch: Launch) -> str:
    """One process on each node, in the words of the line if it has some."""
    count = "NODES" if script.nodes is None else script.nodes
    words = [word.value for word in launch.command.words]
    own = next((option for option in OWN_PER_NODE if option in words), None)
    if own is not None:
        number = next((option for option in ("-n", "-np") if option in words), "-n")
        return f"{launch.started_with} {number} {count} {own} 1 ..."
    by_mapping = f"-np {count} --map-by ppr:1:node"
    if any("ppr:" in word for word in words):
        return f"{launch.started_with} {by_mapping} ..."
    return (
        f"{by_mapping} with Open MPI, -n {count} --ppn 1 with MPICH, PALS or Intel MPI"
    )


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
            f"{launch.started_with} starts {step.tasks} torchruns, and with {told} "
            "each of them is a run of its own"
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
        number = number_that_chooses(script, launch)
        if number:
            what += f": `{number}` is always 0 in the job script"
            cure = (
                "put the whole `if` inside srun bash -c '...', with exported variables"
            )
            yield Problem(launch.line, what, cure)
            return  # the other branches never run
        start = "srun" if script.dialect == "slurm" else "pbs_tmrsh HOST"
        cure = f"{start} {' '.join(t.text for t in launch.tokens[:3])} ..."
        if launch.kind == "deepspeed":
            cure = (
                "deepspeed --hostfile=FILE ..., with a line `HOST slots=GPUS` per node"
            )
        yield Problem(launch.line, what, cure)


def number_that_chooses(script: Script, launch: Launch) -> str | None:
    """The number of the node in the ``if`` around a launch of the job script."""
    if script.dialect != "slurm" or "if" not in launch.command.blocks:
        return None
    tests = [each for each in script.commands if each.line <= launch.command.line]
    for each in reversed(tests):
        words = " ".join(word.value for word in each.words)
        match = BY_NODE.search(words)
        if match and each.tested and is_around(each, launch):
            return match[0]
    return None


def is_around(test: Command, launch: Launch) -> bool:
    return launch.command.blocks[: len(test.blocks) + 1] == (*test.blocks, "if")


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
        started = times(step.tasks, launch.name)
        what = (
            f"{launch.started_with} starts {started}, each expects {told} "
            f"({option_text(launch, 'nnodes', 'num-machines')})"
        )
        cure = f"--nnodes={step.tasks}, or start {times(told, launch.name)}"
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


@TABLE.add("DT114", WARNING, pages.RENDEZVOUS)
def deprecated_launcher(script: Script) -> Iterator[Problem]:
    """torch.distributed.launch

    It's deprecated. Without --use-env it adds an argument to those of the program:
    --local-rank=N, and before torch 2.0 --local_rank=N. A program that knows the other
    spelling ends with "unrecognized arguments: --local-rank=0". torchrun adds none.

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
