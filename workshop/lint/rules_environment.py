"""Rules about threads, paths, and what other people can read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .counts import ranks_of
from .launches import Launch, pairs
from .rule import WARNING, Problem, Table
from .rules_cores import hides_its_component
from .rules_ends import known
from .script import Script

TABLE = Table()
HOME = re.compile(
    r"/(?:home|users|Users|home\d*|nethome)/([A-Za-z][\w.-]*)(?=[/\s\"':]|$)"
)
PLACEHOLDERS = re.compile(
    r"(your|my)?[-_.]?(user(name|id)?|name|login|netid|account|me|project|path|you|shared|"
    r"common|ubuntu|ec2-user|centos|software|opt|apps?|modules?|public|data(sets)?)",
    re.I,
)
OF_THE_NODE = re.compile(
    r"\$\{?SLURM_(?:CPUS_ON_NODE|JOB_CPUS_PER_NODE)\}?|\$\(\s*nproc(\s+--all)?\s*\)"
)
SECRET_NAME = re.compile(r"\w*(API_KEY|TOKEN|SECRET|PASSWORD|PASSWD)$")
SECRET_VALUE = re.compile(r"(?=.*\d)[A-Za-z0-9_\-.]{16,}")
OPEN_TO_ALL = re.compile(r"\bchmod\s+(-\w+\s+)*(0?777|0?666|a\+\w*w\w*|o\+\w*w\w*)\b")


@TABLE.add("DT401", WARNING, pages.START_RANKS)
def one_thread_by_accident(script: Script) -> Iterator[Problem]:
    """One thread per rank by accident

    torchrun sets OMP_NUM_THREADS=1 for its ranks where you set nothing, so most of
    the cores that the job asks for stay idle.

    Cure:
        export OMP_NUM_THREADS=CORES_PER_RANK

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --cpus-per-task=32
        srun -c 32 torchrun --standalone --nproc-per-node=4 train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --cpus-per-task=32
        export OMP_NUM_THREADS=8
        srun -c 32 torchrun --standalone --nproc-per-node=4 train.py
    """
    if script.dialect != "slurm" or script.uses("OMP_NUM_THREADS"):
        return
    for launch in script.launches:
        cores = script.asked(launch).cpus_per_task
        if hides_its_component(script, launch):
            continue
        ranks = ranks_of(script, launch)
        if cores and ranks and ranks > 1 and cores >= 2 * ranks:
            threads = cores // ranks
            what = (
                f"OMP_NUM_THREADS isn't set, so each of {ranks} ranks uses one of its "
                f"{threads} cores"
            )
            cure = f"export OMP_NUM_THREADS={threads}   (less the data workers)"
            component = script.component(launch)
            if component is not None:
                own = f"--export=ALL,OMP_NUM_THREADS={threads}"
                cure = f"srun --het-group={component} {own} ..."
            yield Problem(launch.line, what, cure)
            return


@TABLE.add("DT405", WARNING, pages.START_RANKS)
def threads_of_the_node(script: Script) -> Iterator[Problem]:
    """All cores of the node for each rank

    Each rank starts that many threads, so the ranks of a node together have several
    threads for each core, and all of them are slow.

    Cure:
        export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK for one rank per task; for torchrun,
        the cores of its task divided by its ranks.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --ntasks-per-node=8
        #SBATCH --cpus-per-task=8
        export OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE
        srun -K -c 8 python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --ntasks-per-node=8
        #SBATCH --cpus-per-task=8
        export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
        srun -K -c 8 python train.py
    """
    for launch in script.launches:
        ranks = ranks_of(script, launch) or 1
        tasks = script.step(launch).per_node or 1
        own = [each for command in launch.inner for each in command.assignments]
        again = any(each.name == "OMP_NUM_THREADS" for each in own)
        assignment = script.variables.last("OMP_NUM_THREADS", launch.command.line)
        if again or assignment is None or ranks * tasks < 2 or not known(launch):
            continue
        value = assignment.word.value.partition("=")[2].strip("\"'")
        if OF_THE_NODE.fullmatch(value):
            count = ranks * tasks
            what = f"each of {count} ranks on a node gets `{value}` threads: all cores"
            cure = "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK"
            if ranks > 1 or not script.asked(launch).cpus_per_task:
                cure = f"export OMP_NUM_THREADS=$(({counted(value)} / {count}))"
            yield Problem(assignment.line, what, cure)
            return


def counted(value: str) -> str:
    """A command's number as it stands in a formula, and a variable by its name."""
    return value.strip("${}") if value.startswith("${") or "(" not in value else value


@TABLE.add("DT402", WARNING, pages.ADAPT)
def path_of_a_user(script: Script) -> Iterator[Problem]:
    """A path of one user

    Other people can't run the script, and it fails when the account ends.

    Cure:
        A path relative to the folder of the job; in commands also $HOME or $SCRATCH.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        python /home/alice/project/train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        python "$HOME/project/train.py"
    """
    told: set[str] = set()
    for number, line in enumerate(script.lines, 1):
        is_comment = line.lstrip().startswith("#") and not line.startswith("#SBATCH --")
        for match in () if is_comment else HOME.finditer(line):
            name = match[1]
            if name in told or PLACEHOLDERS.fullmatch(name) or "__" in name:
                continue
            told.add(name)
            what = f"`{match[0]}` is the folder of the user {name}"
            yield Problem(number, what)


@TABLE.add("DT403", WARNING, pages.LINT_SECRETS)
def open_to_all(script: Script) -> Iterator[Problem]:
    """Files that everybody may change

    chmod 777 and umask 0 let every user of the cluster change or delete your
    snapshots and your code.

    Cure:
        chmod g+rwX, with a group of your project.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        chmod -R 777 snapshots
        python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        chmod -R g+rwX snapshots
        python train.py
    """
    for number, line in enumerate(script.lines, 1):
        if line.lstrip().startswith("#"):
            continue
        match = OPEN_TO_ALL.search(line) or re.search(r"\bumask\s+0+\b", line)
        if match:
            what = f"`{match[0]}` lets every user change these files"
            yield Problem(number, what)


@TABLE.add("DT404", WARNING, pages.LINT_SECRETS)
def secret(script: Script) -> Iterator[Problem]:
    """A secret in a job script

    The scheduler keeps the script, where its operators can read it, and so can
    everybody who reads the folder or the repository.

    Cure:
        Keep it in a file that only you can read, and source that file: chmod 600.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        export WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567
        python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        source "$HOME/.wandb_key"
        python train.py
    """
    for name, assignments in script.variables.found.items():
        for assignment in assignments:
            value = assignment.word.value.partition("=")[2]
            if SECRET_NAME.fullmatch(name) and SECRET_VALUE.fullmatch(value):
                what = f"the value of `{name}` is in the script"
                yield Problem(assignment.line, what)
    for launch in script.launches:
        yield from secret_arguments(launch)
    for command in script.commands:
        words = [word.value for word in command.words]
        login = words[:2] in (["wandb", "login"], ["huggingface-cli", "login"])
        if login and any(SECRET_VALUE.fullmatch(word) for word in words[2:]):
            what = f"the key of `{' '.join(words[:2])}` is in the script"
            yield Problem(command.line, what)


def secret_arguments(launch: Launch) -> Iterator[Problem]:
    for text, following in pairs(launch.program):
        named = re.fullmatch(r"--?[\w-]*(token|api[-_]key|password)", text)
        if named and SECRET_VALUE.fullmatch(following):
            yield Problem(launch.line, f"the value of `{text}` is in the script")
