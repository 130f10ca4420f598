"""Who am I among the processes? Read from the environment, and from nothing else.

    from common.distributed import get_dist_env
    env = get_dist_env()  # DistEnv(launcher="torchrun", rank=5, local_rank=1, ...)

Every launcher tells its processes their numbers under names of its own. Launchers
are also started inside each other (torchrun by srun, mpirun inside a Slurm job), and
then the variables of both are present: the innermost one has started this process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from common.distributed import BadInput


class DistEnvError(BadInput):
    """The environment is incomplete or contradicts itself: one sentence says how."""


@dataclass(frozen=True)
class DistEnv:
    """The place of this process in the world."""

    launcher: str  # a key of VARIABLES, or "python"
    rank: int  # 0 .. world_size - 1, over all nodes
    local_rank: int  # 0 .. local_world_size - 1, on this node: picks the device
    world_size: int
    local_world_size: int  # processes of this job on this node
    node_rank: int | None  # None: the launcher does not say


# [start variables]
# The name of each number, launcher by launcher, the innermost launcher first.
VARIABLES = {
    "torchrun": {
        "rank": "RANK",
        "local_rank": "LOCAL_RANK",
        "world_size": "WORLD_SIZE",
        "local_world_size": "LOCAL_WORLD_SIZE",
        "node_rank": "GROUP_RANK",
    },
    "Open MPI": {  # OMPI_COMM_WORLD_NODE_RANK is not the number of the node
        "rank": "OMPI_COMM_WORLD_RANK",
        "local_rank": "OMPI_COMM_WORLD_LOCAL_RANK",
        "world_size": "OMPI_COMM_WORLD_SIZE",
        "local_world_size": "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    "MPICH": {  # and Intel MPI: both start processes with Hydra
        "rank": "PMI_RANK",
        "local_rank": "MPI_LOCALRANKID",
        "world_size": "PMI_SIZE",
        "local_world_size": "MPI_LOCALNRANKS",
    },
    "srun": {  # the processes per node come as a list: SLURM_STEP_TASKS_PER_NODE
        "rank": "SLURM_PROCID",
        "local_rank": "SLURM_LOCALID",
        "world_size": "SLURM_NTASKS",
        "node_rank": "SLURM_NODEID",
    },
    "by hand": {
        "rank": "RANK",
        "local_rank": "LOCAL_RANK",
        "world_size": "WORLD_SIZE",
        "local_world_size": "LOCAL_WORLD_SIZE",
    },
}
# [end variables]

# What must equal the launcher's own number wherever it is set as well. (torchrun sets
# these names itself; a NODE_RANK beside it numbers the nodes in another order.)
COPIES = {
    "rank": ["RANK"],
    "local_rank": ["LOCAL_RANK"],
    "world_size": ["WORLD_SIZE"],
    "local_world_size": ["LOCAL_WORLD_SIZE"],
    "node_rank": ["NODE_RANK"],
}
SRUN_COPIES = {"rank": ["PMI_RANK"], "world_size": ["SLURM_STEP_NUM_TASKS", "PMI_SIZE"]}

# The shell that `salloc` opens on a node is a step, too, but not a rank.
INTERACTIVE_STEP = str(0xFFFFFFFA)


def find_launcher(environ: Mapping[str, str]) -> str:
    """The launcher that started this process: the innermost one that left a trace."""
    if "TORCHELASTIC_RUN_ID" in environ:
        return "torchrun"
    if "OMPI_COMM_WORLD_RANK" in environ:
        return "Open MPI"
    # `srun --mpi=pmi2` sets PMI_RANK as well, but not MPI_LOCALRANKID.
    if "MPI_LOCALRANKID" in environ:
        return "MPICH"
    # A batch script has SLURM_PROCID=0 and the SLURM_NTASKS of its whole job, although
    # it is a single process. Only what srun starts is a step.
    if environ.get("SLURM_STEP_ID", INTERACTIVE_STEP) != INTERACTIVE_STEP:
        return "srun"
    if environ.get("PMI_SIZE", "1") != "1":
        return "MPICH"
    if "RANK" in environ or "WORLD_SIZE" in environ:
        return "by hand"
    return "python"


def get_dist_env(environ: Mapping[str, str] = os.environ) -> DistEnv:
    """The rank, local rank, sizes and launcher of this process.

    Raises:
        DistEnvError: a variable is missing, is no whole number, is out of range, or
            contradicts another one. Variables of an outer launcher may differ from
            those of the inner one: that is no contradiction.
    """
    launcher = find_launcher(environ)
    if launcher == "python":
        return DistEnv("python", 0, 0, 1, 1, 0)
    names = VARIABLES[launcher]
    by = launcher if launcher == "by hand" else f"by {launcher}"
    if missing := [name for name in names.values() if name not in environ]:
        raise DistEnvError(
            f"{', '.join(missing)} not set: a process started {by} needs "
            f"all of {', '.join(names.values())}"
        )
    numbers = {what: read_number(environ, name) for what, name in names.items()}
    if launcher == "srun":
        numbers["local_world_size"] = _tasks_here(environ, numbers["node_rank"])
    _refuse_contradictions(environ, launcher, numbers)
    env = DistEnv(launcher=launcher, **{"node_rank": None, **numbers})
    _refuse_impossible(env)
    return env


def read_number(environ: Mapping[str, str], name: str) -> int:
    """The value of a variable that must be a whole number of 0 or more."""
    text = environ[name]
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise DistEnvError(f"{name}={text!r} is not a whole number of 0 or more")
    return int(text)


def _tasks_here(environ: Mapping[str, str], node_rank: int) -> int:
    """Entry ``node_rank`` of a list like ``4(x2),3``, which stands for 4, 4, 3."""
    text = environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]+)(?:\(x([0-9]+)\))?", part)
        if match is None:
            raise DistEnvError(
                f"SLURM_STEP_TASKS_PER_NODE={text!r} is not a list like 4(x2),3"
            )
        counts += [int(match[1])] * int(match[2] or 1)
    if node_rank >= len(counts):
        raise DistEnvError(
            f"SLURM_NODEID={node_rank} contradicts SLURM_STEP_TASKS_PER_NODE={text}, "
            f"which lists {len(counts)} node(s)"
        )
    return counts[node_rank]


def _refuse_contradictions(
    environ: Mapping[str, str], launcher: str, numbers: Mapping[str, int]
) -> None:
    """Each number under all its names, except those of an outer launcher."""
    if launcher in ("torchrun", "by hand"):
        return
    found = []
    for what, number in numbers.items():
        source = VARIABLES[launcher].get(what, "SLURM_STEP_TASKS_PER_NODE")
        more = SRUN_COPIES.get(what, []) if launcher == "srun" else []
        found += [
            f"{copy}={environ[copy]} contradicts {source}={environ[source]}"
            for copy in COPIES[what] + more
            if copy in environ and read_number(environ, copy) != number
        ]
    if found:
        raise DistEnvError(
            f"{'; '.join(found)}: this process was started by {launcher}, so unset "
            "what something else has set"
        )


def _refuse_impossible(env: DistEnv) -> None:
    """Numbers that no place in a world can have."""
    names = {**VARIABLES[env.launcher]}
    names.setdefault("local_world_size", "SLURM_STEP_TASKS_PER_NODE")
    for small, large, may_be_equal in (
        ("rank", "world_size", False),
        ("local_rank", "local_world_size", False),
        ("local_world_size", "world_size", True),
        ("local_rank", "rank", True),  # a node numbers its ranks in their order
    ):
        left, right = getattr(env, small), getattr(env, large)
        if left > right or (left == right and not may_be_equal):
            relation = "at most" if may_be_equal else "smaller than"
            raise DistEnvError(
                f"{names[small]}={left} must be {relation} {names[large]}={right}"
            )
