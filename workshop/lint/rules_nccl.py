"""Rules about the variables that NCCL and Gloo read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from . import pages
from .counts import expects_many, ranks_of
from .nccl_names import KNOWN
from .rule import ERROR, NOTE, WARNING, Problem, Table
from .rules_names import is_similar
from .script import Script

TABLE = Table()
ALIKE = 0.82  # of the letters
INTERFACES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
LOOPBACK = re.compile(r"=?lo(,lo)*")
# What people write instead.
OTHER_NAMES = {
    **dict.fromkeys(("NCCL_IFNAME", "NCCL_SOCKET_INTERFACE"), "NCCL_SOCKET_IFNAME"),
    **dict.fromkeys(("NCCL_NET_IFNAME", "NCCL_INTERFACE"), "NCCL_SOCKET_IFNAME"),
    **dict.fromkeys(("NCCL_DEBUG_LEVEL", "NCCL_LOG_LEVEL"), "NCCL_DEBUG"),
    **dict.fromkeys(("NCCL_IB_DEVICE", "NCCL_IB_DEVICES"), "NCCL_IB_HCA"),
}
# Families of names that are too many to list.
FAMILIES = re.compile(r"NCCL_(INSPECTOR|PROFILE|PROFILER|RESHARD|GIN|EP|TESTS?|OFI)_")
OF_A_LIST = re.compile(r"(?:^|[,\s]|=ALL,)(\w+)=([^,\s]*)")
INFINIBAND = re.compile(r"\bib\d|infiniband|NCCL_IB_HCA|\b(h|n|e|x)dr\d*\b", re.I)
OTHER_FABRIC = re.compile(r"\bFI_\w+|\bEFA\b|\bhsn\d?\b|OFI|TCPX|FASTRAK|gloo", re.I)
WITH_NVLINK = re.compile(r"\b(a100|h100|h200|h800|gh200|b200|gb200|v100)\b", re.I)


@dataclass(frozen=True)
class Setting:
    """``NAME=VALUE``, as an assignment or in an option of srun or mpirun."""

    name: str
    value: str
    line: int
    certain: bool = True


def settings(script: Script) -> Iterator[Setting]:
    """The variables of the job script, its options, and the shell in each task."""
    own = [each for found in script.variables.found.values() for each in found]
    for launch in script.launches:
        own += [each for command in launch.inner for each in command.assignments]
    for each in own:
        value = each.word.value.partition("=")[2].strip("\"'")
        yield Setting(each.name, value, each.line, each.certain)
    for launch in script.launches:
        if launch.inner:
            continue  # a text with assignments, which are above
        for word in launch.command.words:
            for match in OF_A_LIST.finditer(word.value):
                yield Setting(match[1], match[2], word.line)


def has_several_nodes(script: Script) -> bool:
    by_launch = any(expects_many(script, launch) for launch in script.launches)
    return script.many_nodes or (script.nodes is None and by_launch)


@TABLE.add("DT215", ERROR, pages.NOT_CONNECTED)
def loopback_interface(script: Script) -> Iterator[Problem]:
    """The loopback interface on several nodes

    On each node, lo is the node itself. The ranks of one node connect, and those of
    different nodes don't.

    Cure:
        Remove the line, or name the interface of the network, such as ib0.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        export NCCL_SOCKET_IFNAME=lo
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        export NCCL_SOCKET_IFNAME=ib0
        srun -K python train.py
    """
    if not has_several_nodes(script):
        return
    for each in settings(script):
        lo = each.name in INTERFACES and LOOPBACK.fullmatch(each.value)
        if lo and each.certain:
            what = f"`{each.name}={each.value}` is each node itself"
            yield Problem(each.line, what)


@TABLE.add("DT216", WARNING, pages.NOT_CONNECTED)
def misspelt_for_nccl(script: Script) -> Iterator[Problem]:
    """A variable that NCCL doesn't read

    NCCL reads its own variables and says nothing about others. What you set there has
    no effect.

    Cure:
        Write the name as NCCL has it: NCCL_SOCKET_IFNAME, NCCL_IB_HCA, NCCL_DEBUG.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        export NCCL_SOCKET_IFACE=ib0
        srun python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        export NCCL_SOCKET_IFNAME=ib0
        srun python train.py
    """
    told: set[str] = set()
    for each in settings(script):
        name = each.name
        used = re.search(rf"\$\{{?{name}\b", script.text)
        if name in KNOWN or name in told or used or FAMILIES.match(name):
            continue
        meant = nearest(name)
        if meant is not None:
            told.add(name)
            what = f"NCCL reads no `{name}`: did you mean `{meant}`?"
            if meant.startswith("GLOO"):
                what = f"Gloo reads no `{name}`: did you mean `{meant}`?"
            yield Problem(each.line, what, meant)


def nearest(name: str) -> str | None:
    """A name that NCCL reads, for one of its own or one that looks like it."""
    if name in OTHER_NAMES:
        return OTHER_NAMES[name]
    similar = next((each for each in sorted(KNOWN) if is_similar(name, each)), None)
    if similar is not None or not name.startswith(("NCCL_", "GLOO_")):
        return similar
    start = name[: name.index("_") + 1]
    known = sorted(each.removeprefix(start) for each in KNOWN if each.startswith(start))
    close = get_close_matches(name.removeprefix(start), known, 1, ALIKE)
    return f"{start}{close[0]}" if close else None


@TABLE.add("DT217", WARNING, pages.NODES_MISTAKES)
def fast_path_switched_off(script: Script) -> Iterator[Problem]:
    """A fast connection that is switched off

    With NCCL_IB_DISABLE=1 NCCL uses TCP between nodes. With NCCL_P2P_DISABLE=1 the GPUs
    of a node exchange their data through main memory. Both help to find a fault. Left
    on, they cost most of the bandwidth.

    Cure:
        Remove the line, unless the hardware needs it.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        #SBATCH --constraint=infiniband
        export NCCL_IB_DISABLE=1
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        #SBATCH --constraint=infiniband
        srun -K python train.py
    """
    for each in settings(script):
        name = each.name
        if each.value != "1" or not each.certain:
            continue
        if name == "NCCL_IB_DISABLE" and has_several_nodes(script):
            if OTHER_FABRIC.search(script.text):
                continue
            what = "`NCCL_IB_DISABLE=1` switches InfiniBand off between the nodes"
            severity = WARNING if INFINIBAND.search(script.text) else NOTE
            yield Problem(each.line, what, "", severity)
        if name == "NCCL_P2P_DISABLE" and gpus_of_a_node(script) > 1:
            what = "`NCCL_P2P_DISABLE=1` switches NVLink off between the GPUs of a node"
            severity = WARNING if WITH_NVLINK.search(script.text) else NOTE
            yield Problem(each.line, what, "", severity)


def gpus_of_a_node(script: Script) -> int:
    """By the directives, or by the ranks that a launcher starts."""
    ranks = [ranks_of(script, launch) or 1 for launch in script.launches]
    return script.resources.gpus_per_node or max(ranks, default=1)
