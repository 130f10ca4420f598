"""Rules about what a job asks for: GPUs, memory, and files for its output."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .directives import slurm_options
from .launches import base
from .rule import ERROR, WARNING, Problem, Table
from .script import Script

TABLE = Table()
NUMBER_FIRST = re.compile(r"(\d+):([A-Za-z][\w.-]*)(?=,|$)")
GPUS = ("gres", "gpus", "gpus-per-node", "gpus-per-task")
MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
SEVERAL = re.compile(r"\d\s*[-,]\s*\d")
OWN_FILE = re.compile(r"%\d*[ajJ]")  # of each task of an array


@TABLE.add("DT020", ERROR, pages.READ_THE_SCRIPT)
def number_before_the_type(script: Script) -> Iterator[Problem]:
    """A number of GPUs in front of their type

    The type comes first: gpu:a100:4. sbatch refuses the other order: "Invalid generic
    resource (gres) specification".

    Cure:
        --gres=gpu:TYPE:NUMBER, or --gpus-per-node=TYPE:NUMBER.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4:a100
        srun ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:a100:4
        srun ./job.sh
    """
    for line, name, value in given_options(script):
        if name not in GPUS:
            continue
        for part in value.split(","):
            start = "gpu:" if name == "gres" else ""
            match = NUMBER_FIRST.fullmatch(part.removeprefix(start))
            if match and part.startswith(start):
                fixed = f"{start}{match[2]}:{match[1]}"
                what = f"in `--{name}={value}` the number is in front of the type"
                yield Problem(line, what, f"--{name}={value.replace(part, fixed)}")


def given_options(script: Script) -> Iterator[tuple[int, str, str]]:
    """Line, name and value of the options of sbatch, srun and salloc."""
    for directive in script.directives if script.dialect == "slurm" else ():
        for name, value in directive.options.items() if not directive.late else ():
            yield directive.line, name, value
    for launch in script.launches:
        if launch.starter == "srun":
            for name, value in launch.starter_options.items():
                yield launch.command.line, name, value
    for command in script.commands:
        tool = base(command.name)
        if tool in ("sbatch", "salloc"):
            words = [word.value for word in command.words[1:]]
            for name, value in slurm_options(words, tool)[0].items():
                yield command.line, name, value


@TABLE.add("DT021", ERROR, pages.READ_THE_SCRIPT)
def memory_twice(script: Script) -> Iterator[Problem]:
    """Two ways to ask for memory in one job

    --mem is the memory of a node, and the other two multiply. sbatch refuses two of
    them: "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive".

    Cure:
        Keep one of them.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --mem=64G
        #SBATCH --mem-per-cpu=4G
        srun ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --mem=64G
        srun ./job.sh
    """
    asked = script.resources
    given = [name for name in MEMORY if name in asked.options]
    if script.dialect != "slurm" or len(given) < 2 or script.parts:
        return
    shown = [f"--{name}={asked.value(name)}" for name in given]
    lines = {asked.line(name): text for name, text in zip(given, shown, strict=True)}
    last = max(lines)
    first, other = shown[0], shown[-1]
    what = f"`{first}` and `{other}` exclude each other"
    yield Problem(last, what, f"remove `{lines[last]}`, or the other one")


@TABLE.add("DT024", WARNING, pages.READ_THE_SCRIPT)
def one_file_for_an_array(script: Script) -> Iterator[Problem]:
    """One output file for all tasks of an array

    Each task of the array empties the file, so the tasks overwrite each other's lines.
    %A is the number of the whole array, %a that of the task.

    Cure:
        --output=%x-%A_%a.out

    Bad:
        #!/bin/bash
        #SBATCH --array=0-9
        #SBATCH --output=train.log
        python train.py --fold $SLURM_ARRAY_TASK_ID

    Good:
        #!/bin/bash
        #SBATCH --array=0-9
        #SBATCH --output=train-%A_%a.log
        python train.py --fold $SLURM_ARRAY_TASK_ID
    """
    asked = script.resources
    file = asked.value("output")
    appends = asked.value("open-mode").startswith("a")
    if script.dialect != "slurm" or not SEVERAL.search(asked.value("array")):
        return
    if not file or OWN_FILE.search(file) or "$" in file or appends:
        return
    if not file.startswith("/dev/"):
        stem, dot, ending = file.rpartition(".")
        if "/" in ending or not dot:
            stem, dot, ending = file, "", ""
        number = "_%a" if "%A" in stem else "-%A_%a"
        what = f"all tasks of the array write to `{file}`"
        yield Problem(
            asked.line("output"), what, f"--output={stem}{number}{dot}{ending}"
        )
