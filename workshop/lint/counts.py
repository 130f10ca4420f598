"""How many nodes and ranks a launch line asks for, and how to say a number."""

from __future__ import annotations

import re

from .launches import LAUNCHERS, Launch
from .script import Script

TASK_VARIABLE = re.compile(r"\$\{?(SLURM_(?:NODEID|PROCID|LOCALID))\b")
TORCHRUNS = ("torchrun", "launch")
# Programs of a step that train nothing.
LOOKS_ONLY = {
    "hostname",
    "nvidia-smi",
    "rocm-smi",
    "mkdir",
    "rm",
    "cp",
    "tar",
    "rsync",
    "echo",
    "printenv",
    "env",
    "date",
    "ls",
    "cat",
    "sleep",
    "true",
    "pwd",
}


def times(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def ranks_of(script: Script, launch: Launch) -> int | None:
    """How many ranks one torchrun starts on its node."""
    given = launch.option("nproc-per-node")
    if launch.kind in TORCHRUNS:
        if given is None:
            return None if "$" in launch.options else 1
        return script.number(given)
    return None


def nnodes_of(script: Script, launch: Launch) -> int | None:
    """The number of nodes that a launcher gets; 1 by default."""
    text = launch.option("nnodes", "num-machines", "num-nodes")
    if text is None:
        opaque = "$" in launch.options or launch.option("config-file") is not None
        return None if opaque else 1
    return script.number(text)


def expects_many(script: Script, launch: Launch) -> bool:
    """The launch line itself says that the run has more than one node."""
    text = launch.option("nnodes", "num-machines", "num-nodes") or ""
    number = script.number(text)
    if number is None and text and ":" not in text:
        return script.many_nodes  # of the job, by a name that the script gives it
    return (number or 1) > 1


def is_launcher(launch: Launch) -> bool:
    return launch.kind in LAUNCHERS


def started_by(script: Script) -> bool:
    """The script starts itself, or a copy, on the other nodes."""
    return bool(
        re.search(
            r"\b(srun|mpirun|mpiexec|pbsdsh)\b.*\$\{?0|BASH_SOURCE|\bCommand=",
            script.text,
        )
    )
