"""Rules about the numbers of tasks and ranks that a script hands on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .counts import LOOKS_ONLY, TASK_VARIABLE, is_launcher, started_by, times
from .launches import LAUNCHERS, Launch, base, pairs
from .rule import ERROR, WARNING, Problem, Table
from .script import NODES, Script, is_one_of
from .shell import Assignment
from .words import Word

TABLE = Table()
QUOTED_HEREDOC = re.compile(r"<<-?\s*['\"\\]")
LITERAL = re.compile(r"\$\{?[A-Za-z_]\w*\}?")
# Variables of Slurm that exist only if the job asked with the option.
ONLY_WITH = {
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
    "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_GPUS_PER_NODE": "gpus-per-node",
    "SLURM_GPUS_PER_TASK": "gpus-per-task",
    "SLURM_GPUS": "gpus",
}
WORLD_SIZE = re.compile(
    r"(--(?:distributed[-_])?world[-_]size|(?:\w+\.)+distributed_world_size)(?:=(.+))?"
)
# Options by which a program numbers its ranks, or starts them itself.
NUMBERS_ITSELF = re.compile(
    r"--(multiprocessing[-_]distributed|(distributed[-_])?(rank|nprocs)|node[-_]rank)\b"
)
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
                elif names_a_launcher(value):
                    cure = (
                        f"set it in each task: \\${match[1]} here, and srun bash -c "
                        f'"${name} ..."'
                    )
                line = assignment.line + line_of_match(assignment.word.raw, match[0])
                yield Problem(line, what, cure)


def is_text_of_a_shell(script: Script, name: str) -> bool:
    """``bash -c "$CMD"``: each task runs a shell that reads the text once more."""
    runs_it = rf"\bsrun\b.*\s-[a-z]*c\s+\"[^\"']*\$\{{?{name}\b"
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
    yield from size_of_an_argument(script)


def size_of_an_argument(script: Script) -> Iterator[Problem]:
    """A number of ranks that the program gets, such as fairseq's."""
    for launch in script.launches:
        words = [token.text for token in launch.tokens]
        step = script.step(launch)
        by_srun = launch.starter == "srun" and launch.kind in ("python", "other")
        if not by_srun or not step.tasks or any(map(NUMBERS_ITSELF.match, words)):
            continue
        for word, following in pairs(words):
            match = WORLD_SIZE.fullmatch(word)
            if match is None:
                continue
            size = script.number(match[2] or following)
            if not size or size == step.tasks:
                continue
            spawns = step.per_node == 1 and size % step.tasks == 0
            if not spawns and not script.parts:
                option = f"{match[1]}=" if match[2] else f"{match[1]} "
                started = times(step.tasks, "task")
                what = f"`{option}{size}`, and srun starts {started}"
                yield Problem(launch.line, what, f"{option}$SLURM_NTASKS", WARNING)
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
