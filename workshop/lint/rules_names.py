"""Rules about the names of variables: misspelt ones, and those of ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .counts import times
from .launches import LAUNCHERS, Launch
from .rule import ERROR, WARNING, Problem, Table
from .script import TASKS, Script, is_one_of
from .variables import REFERENCE
from .words import Word

TABLE = Table()
SLURM = """
ARRAY_JOB_ID ARRAY_TASK_COUNT ARRAY_TASK_ID ARRAY_TASK_MAX ARRAY_TASK_MIN
ARRAY_TASK_STEP CLUSTER_NAME CONF CPUS_ON_NODE CPUS_PER_GPU CPUS_PER_TASK DISTRIBUTION
EXPORT_ENV GPUS GPUS_ON_NODE GPUS_PER_NODE GPUS_PER_SOCKET GPUS_PER_TASK GTIDS HET_SIZE
HINT JOBID JOB_ACCOUNT JOB_CPUS_PER_NODE JOB_DEPENDENCY JOB_END_TIME JOB_GPUS JOB_ID
JOB_NAME JOB_NODELIST JOB_NUM_NODES JOB_PARTITION JOB_QOS JOB_RESERVATION
JOB_START_TIME JOB_UID JOB_USER LAUNCH_NODE_IPADDR LOCALID MEM_PER_CPU MEM_PER_GPU
MEM_PER_NODE NNODES NODEID NODELIST NODE_ALIASES NPROCS NTASKS NTASKS_PER_CORE
NTASKS_PER_GPU NTASKS_PER_NODE NTASKS_PER_SOCKET PRIO_PROCESS PROCID RESTART_COUNT
SRUN_COMM_HOST SRUN_COMM_PORT STEPID STEP_GPUS STEP_ID STEP_NODELIST STEP_NUM_NODES
STEP_NUM_TASKS STEP_RESV_PORTS STEP_TASKS_PER_NODE SUBMIT_DIR SUBMIT_HOST
TASKS_PER_NODE TASK_PID THREADS_PER_CORE TMPDIR TOPOLOGY_ADDR WORKING_CLUSTER
"""
PBS = """
ARRAYID ARRAY_ID ARRAY_INDEX ENVIRONMENT JOBCOOKIE JOBDIR JOBFS JOBID JOBNAME MOMPORT
NCPUS NGPUS NODEFILE NODENUM NP NUM_NODES NUM_PPN O_HOME O_HOST O_LOGNAME O_PATH
O_QUEUE O_SHELL O_WORKDIR QUEUE TASKNUM VNODENUM WALLTIME
"""
LAUNCH = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")
KNOWN = {
    *(f"SLURM_{name}" for name in SLURM.split()),
    *(f"PBS_{name}" for name in PBS.split()),
    *LAUNCH,
}
# The number of a task on its node, and what counts the tasks of all nodes.
ON_ITS_NODE = {
    "SLURM_LOCALID": "SLURM_PROCID",
    "OMPI_COMM_WORLD_LOCAL_RANK": "OMPI_COMM_WORLD_RANK",
    "MPI_LOCALRANKID": "PMI_RANK",
    "PALS_LOCAL_RANKID": "PALS_RANKID",
}
PROCID = re.compile(r"\$\{?SLURM_PROCID\}?")
# Names that people set in the shell that submits.
COMMON = {
    *("NNODES", "NODES", "NUM_NODES", "NODE_RANK", "RANK", "NGPUS", "NUM_GPUS", "GPUS"),
    *("GPUS_PER_NODE", "NPROC_PER_NODE", "NPROCS", "HEAD_NODE", "HEAD_ADDR"),
}
SHORTEST = 5  # letters: shorter names are similar by chance
OPTIONS = (
    *("rdzv-endpoint", "rdzv-id", "master-addr", "master-port"),
    *("main-process-ip", "main-process-port", "nnodes", "num-machines"),
    *("node-rank", "machine-rank", "nproc-per-node", "num-processes"),
)


@TABLE.add("DT122", ERROR, pages.READ_THE_SCRIPT)
def misspelt_variable(script: Script) -> Iterator[Problem]:
    r"""A variable that nothing sets, with almost the name of another

    The shell replaces a name that it doesn't know by nothing. The launcher gets an
    address without a port, or an empty number of nodes.

    Cure:
        Use the name that is set; set -u makes the shell refuse a name that isn't.

    Bad:
        MASTER_PORT=29512
        torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-endpoint=node01:$MASTER_PROT train.py

    Good:
        MASTER_PORT=29512
        torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-endpoint=node01:$MASTER_PORT train.py
    """
    told: set[str] = set()
    for launch in script.launches:
        for name, line in names_in_options(launch):
            meant = name_that_is_set(script, name)
            if meant is None or name in told or mentions(script, name):
                continue
            told.add(name)
            what = f"`${name}` is never set here: is it `${meant}`?"
            from_outside = name in KNOWN | COMMON or script.is_line
            unsure = from_outside or script.reads_other_files
            severity = WARNING if unsure else ERROR
            yield Problem(line, what, f"${meant}", severity)


def names_in_options(launch: Launch) -> Iterator[tuple[str, int]]:
    """The variables in the options that say where ranks connect, and their number."""
    if launch.kind not in LAUNCHERS:
        return
    for option in OPTIONS:
        for match in REFERENCE.finditer(launch.options.get(option, "")):
            yield match[1] or match[2], launch.line_of(option)


def name_that_is_set(script: Script, name: str) -> str | None:
    """A similar name that is one of the scheduler's, or set here and never used."""
    own = [*script.variables.found, *script.variables.set_otherwise]
    unused = [each for each in own if not re.search(rf"\$\{{?{each}\b", script.text)]
    known = [] if name in KNOWN else sorted(KNOWN)
    candidates = [*unused, *known]
    return next((each for each in candidates if is_similar(name, each)), None)


def mentions(script: Script, name: str) -> bool:
    """Something in the script may set the variable, or expects that it isn't set."""
    lines = (line for line in script.lines if not line.lstrip().startswith("#"))
    anywhere = rf"(?<![\w$])(?<!\$\{{){name}\b|\$\{{{name}[^}}\w]"
    return any(re.search(anywhere, line) for line in lines)


def is_similar(one: str, other: str) -> bool:
    """One letter more, less or other, or two that are swapped; digits don't count."""
    if min(len(one), len(other)) < SHORTEST or one == other:
        return False
    if one.upper() == other.upper():
        return True
    start = common_start(one, other)
    end = common_start(one[start:][::-1], other[start:][::-1])
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    if any(letter.isdigit() for letter in left + right):
        return False
    return max(len(left), len(right)) == 1 or (len(left) == 2 and left == right[::-1])


def common_start(one: str, other: str) -> int:
    """How many letters two words have in common, from the first on."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


@TABLE.add("DT123", ERROR, pages.NUMBER_RANKS)
def local_rank_of_the_job(script: Script) -> Iterator[Problem]:
    r"""The rank of the job as the local rank

    SLURM_PROCID counts the tasks of all nodes, and SLURM_LOCALID those of one. A rank
    takes the device with the number of its local rank, and from the second node on no
    device has that number.

    Cure:
        LOCAL_RANK=$SLURM_LOCALID

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K bash -c 'LOCAL_RANK=$SLURM_PROCID python train.py'

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K bash -c 'LOCAL_RANK=$SLURM_LOCALID python train.py'
    """
    for launch in script.launches:
        step = script.step(launch)
        gpus = script.asked(launch).gpus_per_node
        devices = gpus or step.per_node
        if launch.kind != "python" or not step.tasks or not devices:
            continue
        if (step.nodes or 1) < 2 or step.tasks <= devices:
            continue
        for assignment in (a for command in launch.inner for a in command.assignments):
            value = assignment.word.value.partition("=")[2].strip("\"'")
            if assignment.name == "LOCAL_RANK" and PROCID.fullmatch(value):
                thing = "GPU" if gpus else "task"
                what = (
                    f"`LOCAL_RANK={value}` goes up to {step.tasks - 1}, and a node has "
                    f"{times(devices, thing)}"
                )
                yield Problem(assignment.line, what, "LOCAL_RANK=$SLURM_LOCALID")
                return


@TABLE.add("DT131", ERROR, pages.NUMBER_RANKS)
def rank_of_one_node(script: Script) -> Iterator[Problem]:
    r"""The local rank as the rank of the job

    SLURM_LOCALID begins at 0 on every node. Two processes then have the same RANK, and
    the job waits for ranks that never join.

    Cure:
        RANK=$SLURM_PROCID

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + SLURM_JOB_ID % 9999))
        srun -K bash -c 'RANK=$SLURM_LOCALID LOCAL_RANK=$SLURM_LOCALID \
          python train.py'

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + SLURM_JOB_ID % 9999))
        srun -K bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID \
          python train.py'
    """
    for launch in script.launches:
        many = (script.step(launch).nodes or 1) > 1
        if launch.kind in LAUNCHERS or launch.starter not in ("srun", "mpirun"):
            continue
        given = ranks_that_are_set(launch)
        if not given:
            continue
        match = REFERENCE.fullmatch(given[-1].value.partition("=")[2])
        name = (match[1] or match[2]) if match else ""
        if many and name in ON_ITS_NODE and not run_of_its_own(script, launch):
            what = f"`RANK=${name}` begins at 0 on each of the nodes"
            yield Problem(given[-1].line, what, f"RANK=${ON_ITS_NODE[name]}")
            return


def run_of_its_own(script: Script, launch: Launch) -> bool:
    """Each node has a run of its own, by its world size or its address."""
    own = [each for command in launch.inner for each in command.assignments]
    line = launch.command.line
    given = {each.name: each for each in own}
    size = given.get("WORLD_SIZE") or script.variables.last("WORLD_SIZE", line)
    address = given.get("MASTER_ADDR") or script.variables.last("MASTER_ADDR", line)
    here = "MASTER_ADDR" in given and address is not None
    shown = address.word.value if address else ""
    if re.search(r"=(localhost|127\.)", shown) or (here and "hostname" in shown):
        return True
    text = size.word.value.partition("=")[2] if size else ""
    of_all = is_one_of(text, TASKS) or script.number(text) == script.step(launch).tasks
    return bool(text) and not of_all and not text.startswith("$OMPI_COMM_WORLD_SIZE")


def ranks_that_are_set(launch: Launch) -> list[Word]:
    """``RANK=...`` in the shell of a task: on its own, in front, or after env."""
    found: list[Word] = []
    for command in launch.inner:
        if command.in_branch and command.follows not in ("&&", "||"):
            continue
        found += [each.word for each in command.assignments if each.name == "RANK"]
        if command.name == "env":
            found += [w for w in command.words if w.value.startswith("RANK=")]
    return found
