"""Rules about files: where they are, and how many tasks write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import pages
from .launches import LAUNCHERS, PYTHON, Launch, base
from .rule import ERROR, WARNING, Problem, Table
from .rules_ends import known
from .script import Script
from .shell import Command

TABLE = Table()
LOCAL = re.compile(
    r"(?P<sure>/tmp/|/var/tmp/|/dev/shm/|\$\{?SLURM_TMPDIR\}?)|"
    r"\$\{?(?:TMPDIR|LOCAL_SCRATCH|LOCALSCRATCH|PBS_JOBFS)\}?|/lscratch/|/localscratch/"
)
COPIES = ("cp", "rsync", "mv", "virtualenv", "git", "aws", "gsutil", "rclone")
# The options that name the folder.
UNPACKS = {
    "tar": ("-C", "--directory"),
    "unzip": ("-d",),
    "unsquashfs": ("-d",),
    "wget": ("-P", "-O"),
    "curl": ("-o",),
    "huggingface-cli": ("--local-dir",),
    "hf": ("--local-dir",),
}
ON_ALL = re.compile(r"\b(srun|sbcast|pdsh|clush|pbsdsh|ssh|mpirun|mpiexec|bcast)\b")
SAME_FOR_ALL = re.compile(
    r"\$\{?(SLURM_JOB_?ID|SLURM_JOB_NAME|SLURM_SUBMIT_DIR|SLURM_ARRAY_\w+|PBS_JOBID|"
    r"PBS_O_WORKDIR|USER|HOME|PWD|SCRATCH|WORK)\}?"
)


@dataclass(frozen=True)
class Written:
    """A folder that a command of the job script fills."""

    path: str
    command: Command
    sure: bool  # surely on a disk of the node


@TABLE.add("DT139", ERROR, pages.WHAT_STARTS_WHAT)
def only_on_the_first_node(script: Script) -> Iterator[Problem]:
    """Files on the disk of the first node only

    The job script runs on the first node. What it unpacks into /tmp or $SLURM_TMPDIR is
    on that node's own disk, and the ranks of the other nodes don't find it.

    Cure:
        srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 in front of each command that
        fills the folder.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        mkdir -p /tmp/data
        tar xf data.tar -C /tmp/data
        srun -K python train.py --data /tmp/data

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 mkdir -p /tmp/data
        srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 tar xf data.tar -C /tmp/data
        srun -K python train.py --data /tmp/data
    """
    if not script.many_nodes:
        return
    told: set[str] = set()
    for written in written_here(script):
        if written.path in told:
            continue
        user = next((e for e in script.launches if uses(script, e, written)), None)
        if user is None or is_filled_on_all(script, written, user):
            continue
        what = f"`{written.path}` is filled on the first of {script.nodes} nodes only"
        where = lines_that_fill(script, written, user)
        cure = f'srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 in front of {where}'
        if script.dialect == "pbs":
            cure = f"run {where} on every host: pbsdsh -- bash -lc '...'"
        severity = ERROR if written.sure else WARNING
        told.add(written.path)
        yield Problem(written.command.line, what, cure, severity)


def written_here(script: Script) -> Iterator[Written]:
    for command in script.commands:
        if command.captured or "function" in command.blocks:
            continue
        path = target_of(script, command)
        match = LOCAL.match(path) if path else None
        if path and match:
            yield Written(path.rstrip("/"), command, bool(match["sure"]))


def lines_that_fill(script: Script, written: Written, user: Launch) -> str:
    """Those that make the folder, fill it, and install into its environment."""
    by_name = base(written.command.name)
    environment = by_name == "virtualenv" or bool(PYTHON.fullmatch(by_name))
    lines: list[int] = []
    for command in script.commands:
        words = [script.variables.fill(w, w.line) for w in command.words]
        name = base(command.name)
        fills = name in ("mkdir", *COPIES, *UNPACKS) or command is written.command
        here = fills and named_in(" ".join(words), written.path)
        installs = environment and name in ("pip", "pip3", "uv")
        before = command.line < user.command.line and not command.captured
        if (here or installs) and before:
            lines.append(command.line)
    shown = ", ".join(str(line) for line in lines[:-1])
    return f"lines {shown} and {lines[-1]}" if shown else f"line {lines[-1]}"


def target_of(script: Script, command: Command) -> str | None:
    """The folder that a command copies or unpacks something into."""
    texts = [script.variables.fill(word, word.line) for word in command.words]
    name = base(command.name)
    for option in UNPACKS.get(name, ()):
        for word, following in zip(texts, [*texts[1:], ""], strict=True):
            if word == option:
                return following
            if word.startswith(f"{option}="):
                return word.partition("=")[2]
    if name == "git" and texts[1:2] != ["clone"]:
        return None
    by_module = bool(PYTHON.fullmatch(name)) and texts[1:3] == ["-m", "venv"]
    return texts[-1] if (name in COPIES or by_module) and len(texts) > 1 else None


def uses(script: Script, launch: Launch, written: Written) -> bool:
    """Ranks on several nodes read the path, or run the environment that's there."""
    step = script.step(launch)
    several = launch.starter and step.tasks != 1 and step.nodes != 1
    later = launch.command.line > written.command.line
    if not several or not later or not known(launch) or launch.in_loop:
        return False
    words = [script.variables.fill(word, word.line) for word in launch.command.words]
    if named_in(" ".join(words), written.path):
        return True
    for command in script.commands:
        before = command.line < launch.command.line and not command.captured
        if before and leads_to(script, command, written.path):
            return True
    return False


def leads_to(script: Script, command: Command, path: str) -> bool:
    """Later commands run in that folder, with its environment, or know its name."""
    words = [script.variables.fill(w, w.line) for w in command.words[1:]]
    if command.name in ("source", "."):
        return f"{path}/bin/activate" in words
    if command.name in ("cd", "export"):
        return named_in(" ".join(words), path)
    return False


def named_in(text: str, path: str) -> bool:
    return bool(re.search(rf"{re.escape(path)}(?![\w-])", text))


def is_filled_on_all(script: Script, written: Written, user: Launch) -> bool:
    """Something that runs on the other nodes, too, speaks of the same place."""
    place = LOCAL.match(written.path)
    root = place[0].strip("${}/") if place else written.path
    for command in script.commands:
        if command is user.command:
            continue
        words = [script.variables.fill(w, w.line) for w in command.words]
        text = " ".join([*words, *(each.text for each in command.heredocs)])
        if ON_ALL.search(text) and (root in text or written.path in text):
            return True
    return False


@TABLE.add("DT140", WARNING, pages.WHAT_STARTS_WHAT)
def one_log_of_all_tasks(script: Script) -> Iterator[Problem]:
    """All tasks write to one file

    In the shell of each task, > empties the file and writes to it from its beginning.
    The tasks overwrite each other's lines.

    Cure:
        srun --output=train-%j-%t.log ..., or a name with $SLURM_PROCID in it.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K bash -c 'source env.sh && python train.py > train.log'

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K --output=train-%j-%t.log bash -c 'source env.sh && python train.py'
    """
    for launch in script.launches:
        step = script.step(launch)
        if launch.starter not in ("srun", "mpirun", "pbsdsh") or (step.tasks or 1) < 2:
            continue
        own = {a.name for command in launch.inner for a in command.assignments}
        for command in launch.inner:
            file = file_of(launch, command)
            if file is None or is_apart(script, file, own, step.per_node):
                continue
            what = f"{step.tasks} tasks write to `{file}`, each from its beginning"
            sign = "tee" if command.ends in ("|", "|&") else ">"
            cure = f"{sign} {with_number(file)}"
            if launch.starter != "srun":
                cure = "a name with the number of the task in it"
            yield Problem(launch.line, what, cure)
            return


def with_number(file: str) -> str:
    """``train.log`` as ``train-$SLURM_PROCID.log``."""
    stem, dot, ending = file.rpartition(".")
    if not stem:
        return f"{file}-$SLURM_PROCID"
    return f"{stem}-$SLURM_PROCID{dot}{ending}"


def file_of(launch: Launch, command: Command) -> str | None:
    """The file that the training of a task writes its output to."""
    words = [word.value for word in command.words]
    trains = any(base(w) in LAUNCHERS or PYTHON.fullmatch(w) for w in words)
    if not trains or {"if", "case"} & set(command.blocks):
        return None
    signs = (">", "&>", ">|")
    files = [word.value for sign, word in command.redirects if sign in signs]
    if command.ends in ("|", "|&"):
        at = next(n for n, each in enumerate(launch.inner) if each is command)
        following = [w.value for e in launch.inner[at + 1 : at + 2] for w in e.words]
        if following[:1] == ["tee"] and "-a" not in following:
            files += following[1:2]
    return files[0] if files else None


def is_apart(script: Script, file: str, own: set[str], per_node: int | None) -> bool:
    """Each task has a file of its own by that name, or it's no file."""
    rest = SAME_FOR_ALL.sub("", file)
    for name in re.findall(r"\$\{?(\w+)\}?", rest):
        if name in script.variables.found and name not in own:
            rest = re.sub(rf"\$\{{?{name}\b\}}?", "", rest)
    local = bool(LOCAL.match(file)) and per_node == 1
    return file.startswith(("/dev/", "&")) or "$" in rest or "`" in rest or local
