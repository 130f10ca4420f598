"""Rules about the options of sbatch and srun: their names and their units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from . import pages
from .directives import slurm_options
from .launches import base
from .options import TABLES, VALID, meanings
from .rule import ERROR, WARNING, Problem, Table
from .rules_names import is_similar
from .script import Script
from .shell import Command

TABLE = Table()
# What people write instead, maybe because another tool has it.
OTHER_NAMES = {
    "timelimit": "time",
    "time-limit": "time",
    "walltime": "time",
    "wall-time": "time",
    "memory": "mem",
    "mem-per-node": "mem",
    "nnodes": "nodes",
    "num-nodes": "nodes",
    "cpus-per-node": "cpus-per-task",
    "cores-per-task": "cpus-per-task",
}
ALMOST, ALIKE = 0.92, 0.86  # of the letters: an error, and a warning
HOURS = (12, 24, 36, 48, 72, 96)  # nobody asks for so many minutes and no seconds
SAYS_HOURS = re.compile(r"\b(days?|hours?|hrs?|\d+\s*h)\b", re.I)
SAYS_MINUTES = re.compile(r"\bmin", re.I)
PER_NODE, PER_CPU = 1000, 100  # MB: less isn't meant as megabytes
MEMORY = {"mem": PER_NODE, "mem-per-gpu": PER_NODE, "mem-per-cpu": PER_CPU}


@dataclass(frozen=True)
class Meant:
    """What a name that Slurm doesn't know was probably meant to be."""

    name: str
    severity: str
    why: str


@TABLE.add("DT017", ERROR, pages.READ_THE_SCRIPT)
def unknown_option(script: Script) -> Iterator[Problem]:
    """An option that Slurm doesn't know

    sbatch and srun take the name of an option, or an abbreviation that fits one option
    only. They refuse any other: "unrecognized option", and nothing starts.

    Cure:
        Write the name as the manual has it: --gpus-per-node, --ntasks-per-node.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gpu-per-node=2
        srun ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gpus-per-node=2
        srun ./job.sh
    """
    for line, name, tool in long_options(script):
        meant = meant_by(name, tool)
        if meant is not None:
            what = f"{tool} has no option `--{name}`{meant.why}"
            yield Problem(line, what, f"--{meant.name}", meant.severity)


def long_options(script: Script) -> Iterator[tuple[int, str, str]]:
    """Line, name and tool of each option that is written out."""
    for directive in script.directives if script.dialect == "slurm" else ():
        for name in directive.options if not directive.late else ():
            if f"--{name}" in directive.text:
                yield directive.line, name, "sbatch"
    for launch in script.launches:
        if launch.starter == "srun":
            for name in launch.starter_options:
                yield line_of_option(launch.command, name), name, "srun"
    for command in script.commands:
        tool = base(command.name)
        if tool in ("sbatch", "salloc"):
            words = [word.value for word in command.words[1:]]
            for name in slurm_options(words, tool)[0]:
                yield line_of_option(command, name), name, tool


def line_of_option(command: Command, name: str) -> int:
    lines = (w.line for w in command.words if w.value.startswith(f"--{name}"))
    return next(lines, command.line)


def meant_by(name: str, tool: str) -> Meant | None:
    """The option that an unknown name is like; None if it's like no other.

    A site's plugins add options, so a name that resembles none is let alone.
    """
    spelled = name.lower().replace("_", "-")
    if name in VALID or not re.fullmatch(r"[a-z][\w-]+", name, re.I):
        return None
    known = TABLES[tool]
    why = ": did you mean `--{}`?"
    certain = spelled if spelled in VALID else OTHER_NAMES.get(spelled)
    if certain is None and f"{name}s" in known:
        certain = f"{name}s"
    if certain is None:
        near = (each for each in sorted(known) if is_similar(spelled, each))
        certain = next(near, None)
    if certain is not None:
        return Meant(certain, ERROR, why.format(certain))
    several = meanings(name, tool)
    if several:
        shown = ", ".join(f"--{each}" for each in several[:4])
        return Meant(several[0], WARNING, f", and it abbreviates several: {shown}")
    for cutoff, severity in ((ALMOST, ERROR), (ALIKE, WARNING)):
        close = get_close_matches(spelled, sorted(known), 1, cutoff)
        if close:
            return Meant(close[0], severity, why.format(close[0]))
    return None


@TABLE.add("DT018", WARNING, pages.READ_THE_SCRIPT)
def minutes_for_hours(script: Script) -> Iterator[Problem]:
    """A time limit in minutes that looks like hours

    Two numbers are minutes and seconds: 24:00 is 24 minutes. Hours need all three, or
    Slurm's form with days.

    Cure:
        --time=24:00:00, or --time=1-00:00:00 for one day.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --time=24:00
        srun python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --time=24:00:00
        srun python train.py --save-every 1
    """
    names = {"slurm": "time", "pbs": "l walltime"}
    name = names.get(script.dialect, "")
    text, line = script.resources.value(name), script.resources.line(name)
    match = re.fullmatch(r"(\d{1,3}):00", text)
    if match is None:
        return
    comment = comment_behind(script, line, text)
    says_hours = SAYS_HOURS.search(comment) and not SAYS_MINUTES.search(comment)
    looks_like_hours = int(match[1]) in HOURS and not SAYS_MINUTES.search(comment)
    if says_hours or looks_like_hours:
        option = name.removeprefix("l ")
        what = f"`{option}={text}` is {int(match[1])} minutes, not hours"
        cure = f"{option}={text}:00"
        if int(match[1]) < 60:
            cure += f", or {option}=00:{text} if you mean minutes"
        yield Problem(line, what, cure)


def comment_behind(script: Script, line: int, text: str) -> str:
    """What the line says after a value; nothing if the command line has the value."""
    in_script = 0 < line <= len(script.lines)
    return script.lines[line - 1].partition(text)[2] if in_script else ""


@TABLE.add("DT019", WARNING, pages.READ_THE_SCRIPT)
def megabytes_for_gigabytes(script: Script) -> Iterator[Problem]:
    """Memory without a unit

    A number without a unit is megabytes, unless the site has changed that
    (default_gbytes). A job that uses more is killed.

    Cure:
        Write the unit: --mem=64G.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --mem=64
        srun python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --mem=64G
        srun python train.py
    """
    for directive in script.directives if script.dialect == "slurm" else ():
        for name, least in MEMORY.items():
            text = directive.options.get(name, "")
            megabytes = int(text) if re.fullmatch(r"\d{1,9}", text) else 0
            if 0 < megabytes < least and not directive.late:
                what = f"`--{name}={text}` is {text} MB"
                yield Problem(directive.line, what, f"--{name}={text}G")
