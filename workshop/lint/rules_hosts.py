"""Rules about the tasks on other hosts, and what they get from the job script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .counts import expects_many
from .launches import Launch, base, pairs
from .rule import ERROR, WARNING, Problem, Table
from .rules_ends import WAIT_FOR_EACH, known
from .script import Script
from .variables import REFERENCE

TABLE = Table()
ONE_BY_ONE = ("ssh", "blaunch", "pbs_tmrsh")  # return when the command has ended
DETACHES = re.compile(r"\b(tmux|screen|systemd-run|setsid -f)\b")
LINES = re.compile(r"wc\s+-l[^|]*PBS_NODEFILE|PBS_NODEFILE[^|]*\|\s*wc\s+-l")
UNIQUE = re.compile(r"\buniq\b|sort\s+(-\w+\s+)*-\w*u")
# Where people install an MPI of their own, built without PBS.
OWN_MPI = re.compile(
    r".*(conda|mamba|/v?envs?/|VIRTUAL_ENV|\.local).*/mpi(run|exec)", re.I
)
# Options of the launcher that programs rarely have.
OF_DEEPSPEED = {"hostfile", "num-gpus", "num-nodes", "master-port", "master-addr"}
NAMES_A_HOST = re.compile(r"@|:\d|^localhost")
# Settings of Open MPI that may name the variables, too.
LISTED_OTHERWISE = (r"\w*mca_base_env_list", r"OMPI_MCA\w*")
OF_OPEN_MPI = re.compile(r"(?:^|\s)(--?mca|--map-by|--bind-to|-x)\s|OMPI_COMM_WORLD")
NAMES_HOSTS = re.compile(r"^--?(hostfile|machinefile|host|hosts|f|H)\b")


@TABLE.add("DT125", WARNING, pages.WHAT_STARTS_WHAT)
def environment_left_behind(script: Script) -> Iterator[Problem]:
    """srun --export without ALL

    The tasks then get the variables of that list and those of Slurm. PATH, the modules
    and the virtual environment of the job script are gone.

    Cure:
        srun --export=ALL,NAME=VALUE ...

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        srun -K --export=NCCL_DEBUG=INFO python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        srun -K --export=ALL,NCCL_DEBUG=INFO python train.py
    """
    for launch in script.launches:
        text = launch.starter_options.get("export", "").strip("\"'")
        names = [part.partition("=")[0].upper() for part in text.split(",")]
        kept = {"ALL", "PATH"} & set(names) or "$" in names[0]
        login = re.search(r"\s(-[a-z]*l|--login)", launch.shell)
        program = launch.tokens[0].text if launch.tokens else ""
        by_path = program.startswith(("/", "$"))
        if launch.starter != "srun" or not text or kept or login or by_path:
            continue
        if known(launch):
            what = f"`--export={text}` leaves PATH and the rest of the environment out"
            cure = f"--export=ALL,{text}"
            if names in (["NONE"], ["NIL"]):
                cure = "--export=ALL"
            yield Problem(launch.command.line, what, cure)


@TABLE.add("DT126", ERROR, pages.PBS_EVERY_HOST)
def one_node_after_the_other(script: Script) -> Iterator[Problem]:
    r"""One node after the other

    ssh, srun and pbsdsh return when the command has ended. The launcher of the first
    node waits for those of the others, which the loop would start after it.

    Cure:
        End the command in the loop with &, and wait for each of them after the loop.

    Bad:
        for i in 0 1; do
          ssh node$i "cd job && torchrun --nnodes=2 --nproc-per-node=4 --node-rank=$i \
            --master-addr=node0 train.py"
        done

    Good:
        for i in 0 1; do
          ssh node$i "cd job && torchrun --nnodes=2 --nproc-per-node=4 --node-rank=$i \
            --master-addr=node0 train.py" &
          pids+=($!)
        done
        for pid in "${pids[@]}"; do wait "$pid" || exit $?; done
    """
    for launch in script.launches:
        command = launch.command
        name = base(command.name)
        texts = [word.value for word in command.words]
        returns = any(re.fullmatch(r"-[a-z]*f", text) for text in texts)
        inside = any(each.background for each in launch.inner)
        inside = inside or any(DETACHES.search(text) for text in texts)
        one_task = launch.starter_options.keys() & {"nodelist", "-n"}
        one_by_one = name in ONE_BY_ONE or (name in ("srun", "pbsdsh") and one_task)
        if not one_by_one or returns or inside or command.background:
            continue
        if name == "srun" and script.step(launch).tasks != 1:
            continue
        here = launch.in_loop and not {"function", "if", "case"} & set(command.blocks)
        if here and expects_many(script, launch) and not command.captured:
            what = (
                f"the loop waits for `{name}` of the first node, and {launch.name} "
                "there waits for the other nodes"
            )
            cure = f"end the command of `{name}` with &, {WAIT_FOR_EACH}"
            yield Problem(command.line, what, cure)
            return


@TABLE.add("DT127", ERROR, pages.PBS_EVERY_HOST)
def lines_counted_as_nodes(script: Script) -> Iterator[Problem]:
    """The lines of PBS_NODEFILE as the number of nodes

    The file has one line for each MPI rank: with mpiprocs=4, four for each host.

    Cure:
        NNODES=$(sort -u "$PBS_NODEFILE" | wc -l)

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=4
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        NNODES=$(wc -l < $PBS_NODEFILE)
        head=$(head -n 1 $PBS_NODEFILE)
        port=$((20000 + ${PBS_JOBID%%.*} % 9999))
        mpirun -np 2 --map-by ppr:1:node torchrun --nnodes=$NNODES \
          --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$head:$port train.py

    Good:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=4
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        NNODES=$(sort -u $PBS_NODEFILE | wc -l)
        head=$(head -n 1 $PBS_NODEFILE)
        port=$((20000 + ${PBS_JOBID%%.*} % 9999))
        mpirun -np 2 --map-by ppr:1:node torchrun --nnodes=$NNODES \
          --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$head:$port train.py
    """
    per_host = script.resources.tasks_per_node or 1
    if script.dialect != "pbs" or per_host < 2:
        return
    for launch in script.launches:
        text = launch.option("nnodes", "num-machines") or ""
        match = REFERENCE.fullmatch(text.strip('"'))
        line, name = launch.line_of("nnodes", "num-machines"), "--nnodes"
        if match:
            name = match[1] or match[2]
            assignment = script.variables.last(name, launch.line)
            if assignment is None:
                continue
            text, line = assignment.word.value, assignment.line
        if LINES.search(text) and not UNIQUE.search(text):
            what = f"`{name}` counts {per_host} lines of PBS_NODEFILE for each host"
            yield Problem(line, what, f'{name}=$(sort -u "$PBS_NODEFILE" | wc -l)')
            return


@TABLE.add("DT128", WARNING, pages.MPIRUN)
def own_mpi_without_hosts(script: Script) -> Iterator[Problem]:
    """An MPI of your own that isn't told the hosts

    The mpirun of conda or pip is built without PBS. It starts all processes on the
    first host.

    Cure:
        mpirun --hostfile "$PBS_NODEFILE" ..., or the MPI of the site.

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=4
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        $CONDA_PREFIX/bin/mpirun -np 8 python train.py

    Good:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=4
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        $CONDA_PREFIX/bin/mpirun --hostfile $PBS_NODEFILE -np 8 python train.py
    """
    told_otherwise = script.uses(r"OMPI_MCA_\w*hostfile", r"HYDRA_HOST_FILE")
    if script.dialect != "pbs" or not script.many_nodes or told_otherwise:
        return
    for launch in script.launches:
        words = [word.value for word in launch.command.words]
        own = [word for word in words if OWN_MPI.fullmatch(word)]
        hosts = any(NAMES_HOSTS.match(word) for word in words)
        if launch.starter == "mpirun" and own and not hosts:
            what = f"`{own[0]}` is built without PBS: all processes on the first host"
            cure = f'{own[0]} --hostfile "$PBS_NODEFILE" ...'
            yield Problem(launch.line, what, cure)
            return


@TABLE.add("DT129", ERROR, pages.PBS_TASKS)
def variable_that_pbsdsh_drops(script: Script) -> Iterator[Problem]:
    r"""An exported variable in a task of pbsdsh

    pbsdsh passes on no variables of the job script. In single quotes, the name is left
    to the shell of the task, where it's empty.

    Cure:
        Let the job script fill it in: bash -lc "torchrun ... $MASTER_ADDR ...".

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=1
        #PBS -l place=scatter
        export head=$(head -n 1 $PBS_NODEFILE)
        said=$(pbsdsh -- bash -lc 'cd $PBS_O_WORKDIR && torchrun --nnodes=2 \
          --nproc-per-node=4 --rdzv-backend=c10d --rdzv-id=$PBS_JOBID \
          --rdzv-endpoint=$head:$((20000 + ${PBS_JOBID%%.*} % 9999)) train.py')
        [[ $said != *"exit status"* ]]

    Good:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=1
        #PBS -l place=scatter
        export head=$(head -n 1 $PBS_NODEFILE)
        said=$(pbsdsh -- bash -lc "cd $PBS_O_WORKDIR && torchrun --nnodes=2 \
          --nproc-per-node=4 --rdzv-backend=c10d --rdzv-id=$PBS_JOBID \
          --rdzv-endpoint=$head:$((20000 + ${PBS_JOBID%%.*} % 9999)) train.py")
        [[ $said != *"exit status"* ]]
    """
    for launch in script.launches:
        if launch.starter != "pbsdsh" or launch.file is not None:
            continue
        for name in names_left_to_the_task(launch):
            if name in script.variables.found:
                what = f"`${name}` is empty in each task: pbsdsh passes on no variables"
                yield Problem(launch.line, what, f'bash -lc "... ${name} ..."')
                return


def names_left_to_the_task(launch: Launch) -> list[str]:
    """Variables in the launcher's options that the shell of the task must know."""
    own = {each.name for command in launch.inner for each in command.assignments}
    files = [c.words[-1].value for c in launch.inner if c.name in ("source", ".")]
    if any(not file.endswith("activate") for file in files):
        return []
    words = launch.command.words
    quoted = "".join(word.left for word in words)
    options = " ".join(launch.as_written.values())
    names = [match[1] or match[2] for match in REFERENCE.finditer(options)]
    return [
        name
        for name in names
        if name not in own and re.search(rf"\$\{{?{name}\b", quoted)
    ]


@TABLE.add("DT134", WARNING, pages.NUMBER_THEM)
def options_behind_the_program(script: Script) -> Iterator[Problem]:
    """An option of deepspeed behind the program

    What follows the program's name goes to the program. deepspeed doesn't see it, and
    starts the ranks of one node, at its default port.

    Cure:
        deepspeed --hostfile=FILE --master_port=PORT train.py ...

    Bad:
        deepspeed train.py --hostfile=hosts --deepspeed_config zero3.json

    Good:
        deepspeed --hostfile=hosts train.py --deepspeed_config zero3.json
    """
    for launch in script.launches:
        if launch.kind != "deepspeed" or not launch.program:
            continue
        for text, following in pairs(launch.program[1:]):
            option, _, attached = text.partition("=")
            name = option.removeprefix("--").replace("_", "-")
            if not option.startswith("--") or name in launch.options:
                continue
            hosts = NAMES_A_HOST.search(attached or following)
            if name in OF_DEEPSPEED or (name == "include" and hosts):
                program = base(launch.program[0])
                what = f"`{option}` is behind `{program}`, so deepspeed doesn't see it"
                value = attached or following
                cure = f"deepspeed {option}={value} ... {program} ..."
                yield Problem(launch.line, what, cure)
                break


@TABLE.add("DT135", WARNING, pages.PASS_ON)
def address_that_stays_behind(script: Script) -> Iterator[Problem]:
    """An address that mpirun doesn't pass on

    Outside a job, Open MPI starts its processes on other hosts by ssh, and passes on
    the variables that -x names. The others find no MASTER_ADDR.

    Cure:
        mpirun -x MASTER_ADDR -x MASTER_PORT ...

    Bad:
        export MASTER_ADDR=node01 MASTER_PORT=29512
        mpirun --hostfile hosts -np 16 --map-by slot python train.py

    Good:
        export MASTER_ADDR=node01 MASTER_PORT=29512
        mpirun --hostfile hosts -np 16 --map-by slot -x MASTER_ADDR -x MASTER_PORT \
          python train.py
    """
    if script.dialect != "shell" or script.uses(*LISTED_OTHERWISE):
        return
    for launch in script.launches:
        words = [word.value for word in launch.command.words]
        by_option = {"-H", "--host", "-host"} & set(words)
        hosts = by_option or "hosts" in launch.starter_options
        open_mpi = OF_OPEN_MPI.search(" ".join(words))
        own = {a.name for each in launch.inner for a in each.assignments}
        lost = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in own]
        lost = [name for name in lost if name in script.variables.found]
        lost = [name for name in lost if not passed_on(words, name)]
        reads = any(each.name in ("source", ".") for each in launch.inner)
        by_mpi = launch.starter == "mpirun" and launch.kind == "python"
        if by_mpi and hosts and open_mpi and lost and not reads:
            shown = " and ".join(f"`{name}`" for name in lost)
            what = f"mpirun passes no {shown} on to the other hosts"
            cure = f"mpirun {' '.join(f'-x {name}' for name in lost)} ..."
            yield Problem(launch.line, what, cure)
            return


def passed_on(words: list[str], name: str) -> bool:
    """``-x NAME`` or ``-x NAME=VALUE``, or a word that may hold it."""
    given = [after for word, after in pairs(words) if word == "-x"]
    opaque = any(re.match(r"\$\{?\w*(ARG|OPT|FLAG|MPI)", word) for word in words)
    return opaque or any(re.match(rf"{name}\b", word) for word in given)
