"""Rules about what a task of PBS begins without."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .rule import ERROR, WARNING, Problem, Table
from .script import Script

TABLE = Table()


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
