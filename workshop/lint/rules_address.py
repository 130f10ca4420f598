"""Rules about the node whose address all ranks use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import pages
from .counts import TORCHRUNS, expects_many
from .launches import LAUNCHERS, TASK_NUMBER, Launch
from .rule import ERROR, WARNING, Problem, Table
from .rules_rendezvous import ADDRESS, first_node, is_static
from .script import Script
from .variables import REFERENCE

TABLE = Table()
NUMBER = re.compile(rf"\$\{{?(?:{TASK_NUMBER.pattern})\}}?")
LIST = re.compile(r"scontrol\s+show\s+hostname|NODEFILE|NODELIST")
LAST = re.compile(
    r"\|\s*tail\s+(?:-n\s*|-|--lines=)1\b|\|\s*sed\s+-n\s+['\"]?\$p"
    r"|\$\{\w+\[-1\]\}|\$\{\w+\[@\]:\s+-1\}"
    r"|\$\{\w+\[[$({ ]*(?:SLURM_NNODES|SLURM_JOB_NUM_NODES|#\w+\[[@*]\])\}?\s*-\s*1"
)
TURNED = re.compile(r"\btac\b|\bsort\s+(?:-\w+\s+)*-\w*r|arbitrary|SLURM_HOSTFILE")
ALL_OF_THEM = re.compile(
    r"[\"']?(\$\(\s*(?:scontrol\s+show\s+hostnames?|srun\s+hostname)[^|;)]*\)|"
    r"\$\{?SLURM_(?:JOB_)?NODELIST\}?|\$\(\s*sort\s+-u\s+[^|;)]*NODEFILE[^|;)]*\))"
    r"[\"']?"
)
OTHER_ADDRESS = re.compile(
    r"tcp://|file://|init[-_]method|dist[-_]url|master|addr", re.I
)


@dataclass(frozen=True)
class Address:
    """What a launch gets as its address, before a command has printed it."""

    name: str  # of the variable, or the option itself
    value: str
    line: int


def address_of(script: Script, launch: Launch) -> Address | None:
    """The address as the script writes it, maybe by way of a variable."""
    if launch.kind == "python" and launch.starter in ("srun", "mpirun"):
        return address_in(script, "MASTER_ADDR", launch.line)
    for option in ADDRESS:
        for text in (launch.as_written.get(option), launch.options.get(option)):
            match = REFERENCE.match(text or "")
            if match:
                return address_in(script, match[1] or match[2], launch.line)
        if option in launch.options:
            value = launch.options[option].rpartition(":")[0]
            value = value if option == "rdzv-endpoint" else launch.options[option]
            return Address(f"--{option}", value, launch.line_of(option))
    return None


def address_in(script: Script, name: str, line: int) -> Address | None:
    assignment = script.variables.last(name, line)
    if assignment is None or assignment.word.array is not None:
        return None
    value = assignment.word.value.partition("=")[2]
    return Address(name, value, assignment.line)


def list_of(script: Script, value: str) -> str:
    """How the list was made that a value takes an element of."""
    element = re.search(r"\$\{(\w+)\[", value)
    if element is None:
        return value
    lists = [each.word.raw for each in script.variables.found.get(element[1], [])]
    for command in script.commands:
        names = {word.value for word in command.words}
        if command.name in ("mapfile", "readarray") and element[1] in names:
            lists += [word.raw for _, word in command.redirects]
    return " ".join(lists)


def numbered_by_the_task(launch: Launch) -> bool:
    """Rank 0 is on the first node, because the tasks are numbered in this order."""
    if launch.kind in LAUNCHERS:
        written = launch.as_written
        rank = written.get("node-rank", "") or written.get("machine-rank", "")
        return is_static(launch) and bool(NUMBER.fullmatch(rank))
    own = [each for command in launch.inner for each in command.assignments]
    ranks = [each.word.value for each in own if each.name == "RANK"]
    return any(NUMBER.fullmatch(value.partition("=")[2]) for value in ranks)


@TABLE.add("DT211", ERROR, pages.NOT_CONNECTED)
def last_node(script: Script) -> Iterator[Problem]:
    r"""The address of the last node, and rank 0 on the first

    Rank 0 listens for the others on its own node, which is the first one when tasks
    number the nodes. All the others look for it on the last one.

    Cure:
        head -n 1 instead of tail -n 1, or ${NODES[0]}.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
        export head=${nodes[-1]} port=$((20000 + SLURM_JOB_ID % 9999))
        srun -K bash -c 'torchrun --nnodes=2 --nproc-per-node=4 \
          --node-rank=$SLURM_NODEID --master-addr=$head --master-port=$port train.py'

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
        export head=${nodes[0]} port=$((20000 + SLURM_JOB_ID % 9999))
        srun -K bash -c 'torchrun --nnodes=2 --nproc-per-node=4 \
          --node-rank=$SLURM_NODEID --master-addr=$head --master-port=$port train.py'
    """
    if not script.many_nodes or TURNED.search(script.text):
        return
    for launch in script.launches:
        found = address_of(script, launch)
        if found is None or not numbered_by_the_task(launch):
            continue
        match = LAST.search(found.value)
        if match and LIST.search(list_of(script, found.value)):
            shown = match[0].lstrip("| ")
            what = (
                f"`{found.name}` is the last node (`{shown}`), and rank 0 is on the "
                "first"
            )
            yield Problem(found.line, what, f"{found.name}={first_node(script)}")
            return


@TABLE.add("DT212", ERROR, pages.NOT_CONNECTED)
def all_nodes_as_address(script: Script) -> Iterator[Problem]:
    """All nodes as one address

    An address is the name of one node. The list of a job has the names of all.

    Cure:
        Take the first: $(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1).

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
        srun -K python train.py
    """
    if not script.many_nodes:
        return
    for launch in script.launches:
        found = address_of(script, launch)
        if found is None:
            continue
        if ALL_OF_THEM.fullmatch(found.value):
            what = f"`{found.name}` gets the names of all {script.nodes} nodes"
            yield Problem(found.line, what, f"{found.name}={first_node(script)}")
            return


@TABLE.add("DT213", WARNING, pages.NUMBER_RANKS)
def ranks_without_address(script: Script) -> Iterator[Problem]:
    r"""Ranks with numbers, and without an address

    env:// reads four variables: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. With
    the first two alone the program ends: "environment variable MASTER_ADDR expected".

    Cure:
        export MASTER_ADDR and MASTER_PORT above the srun, unless the program sets them.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS python train.py'

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
        export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
        srun -K bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS python train.py'
    """
    code = [line for line in script.lines if not line.lstrip().startswith("#")]
    reads = any(each.name in ("source", ".") for each in script.commands)
    if not script.many_nodes or reads or OTHER_ADDRESS.search("\n".join(code)):
        return
    for launch in script.launches:
        own = {a.name for command in launch.inner for a in command.assignments}
        reads = any(each.name in ("source", ".") for each in launch.inner)
        per_rank = launch.kind == "python" and launch.starter == "srun" and not reads
        if per_rank and {"RANK", "WORLD_SIZE"} <= own:
            what = "the ranks get RANK and WORLD_SIZE, and no MASTER_ADDR"
            cure = f"export MASTER_ADDR={first_node(script)}"
            yield Problem(launch.line, what, cure)
            return


@TABLE.add("DT214", WARNING, pages.RENDEZVOUS)
def restarts_of_one_node(script: Script) -> Iterator[Problem]:
    r"""Restarts with static ranks

    With static ranks a torchrun never learns that another one has restarted its ranks.
    It leaves its own running, and they wait for ranks that are gone.

    Cure:
        --rdzv-backend=c10d --rdzv-endpoint=HOST:PORT, which restarts all nodes.

    Bad:
        torchrun --nnodes=2 --nproc-per-node=4 --max-restarts=3 --node-rank=1 \
          --master-addr=node01 train.py

    Good:
        torchrun --nnodes=2 --nproc-per-node=4 --max-restarts=3 \
          --rdzv-backend=c10d --rdzv-endpoint=node01:29500 train.py
    """
    for launch in script.launches:
        restarts = script.number(launch.option("max-restarts"))
        torchrun = launch.kind in TORCHRUNS and "$" not in launch.options
        if not torchrun or not restarts or not expects_many(script, launch):
            continue
        if is_static(launch) and launch.option("standalone") is None:
            what = f"`--max-restarts={restarts}` restarts the ranks of one node alone"
            yield Problem(launch.line_of("max-restarts"), what)
            return
