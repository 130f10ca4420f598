"""Who started this process, which rank is it, and where do all ranks connect?

Every launcher tells its processes their numbers under names of its own. Launchers
are also started inside each other (torchrun by srun, mpirun inside a Slurm job), and
then the variables of both are present: the innermost one has started this process.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from common.bad_input import BadInput


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

# What must equal the launcher's own number wherever it is set as well (not by torchrun)
COPIES = VARIABLES["by hand"] | {"node_rank": "NODE_RANK"}
# The shell that `salloc` opens on a node is a step, too, but not a rank.
INTERACTIVE_STEP = str(0xFFFFFFFA)


def find_launcher(environ: Mapping[str, str] = os.environ) -> str:
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


def told_rank(environ: Mapping[str, str] = os.environ) -> str:
    """The rank of this process, as its launcher spells it; "0" without a launcher.

    Unlike :func:`get_dist_env` it refuses nothing: an error has to be said by somebody.
    """
    launcher = find_launcher(environ)
    if launcher == "python":
        return "0"
    return environ.get(VARIABLES[launcher]["rank"], "0")


def read_number(name: str, environ: Mapping[str, str] = os.environ) -> int:
    """The whole number, 0 or more, in this environment variable."""
    text = environ.get(name, "")
    if not (text.isascii() and text.isdecimal()):
        cure = "set it, or use a launcher that does, such as torchrun or srun"
        raise BadInput(f"{name}={text!r} is not a whole number of 0 or more: {cure}")
    return int(text)


def get_dist_env(environ: Mapping[str, str] = os.environ) -> DistEnv:
    """The rank, local rank, sizes and launcher of this process; or BadInput."""
    launcher = find_launcher(environ)
    if launcher == "python":
        return DistEnv("python", 0, 0, 1, 1, 0)
    names = VARIABLES[launcher]
    by = launcher if launcher == "by hand" else f"by {launcher}"
    missing = [name for name in names.values() if name not in environ]
    if missing:
        raise BadInput(
            f"{', '.join(missing)} not set: a process started {by} needs "
            f"all of {', '.join(names.values())}"
        )
    values = {what: read_number(name, environ) for what, name in names.items()}
    if launcher == "srun":
        values["local_world_size"] = _tasks_here(environ, values["node_rank"])
    _refuse_contradictions(environ, launcher, values)
    env = DistEnv(launcher=launcher, **{"node_rank": None, **values})
    _refuse_impossible(env)
    return env


def _tasks_here(environ: Mapping[str, str], node_rank: int) -> int:
    """Entry ``node_rank`` of a list like ``4(x2),3``, which stands for 4, 4, 3."""
    text = environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    if not re.fullmatch(r"([0-9]+(\(x[0-9]+\))?,?)+", text):
        raise BadInput(f"SLURM_STEP_TASKS_PER_NODE={text!r} is not a list like 4(x2),3")
    counts: list[int] = []
    for tasks, nodes in re.findall(r"([0-9]+)(?:\(x([0-9]+)\))?", text):
        counts += [int(tasks)] * int(nodes or 1)
    if node_rank >= len(counts):
        raise BadInput(
            f"SLURM_NODEID={node_rank} contradicts SLURM_STEP_TASKS_PER_NODE={text}, "
            f"which lists {len(counts)} node(s)"
        )
    return counts[node_rank]


def _refuse_contradictions(environ: Mapping, launcher: str, values: dict) -> None:
    """Each number under all its names, except those of an outer launcher."""
    names = {"local_world_size": "SLURM_STEP_TASKS_PER_NODE", **VARIABLES[launcher]}
    found = [
        f"{copy}={environ[copy]} contradicts {names[what]}={environ[names[what]]}"
        for what, copy in COPIES.items()
        if copy in environ
        and what in values
        and launcher not in ("torchrun", "by hand")
        if read_number(copy, environ) != values[what]
    ]
    if found:
        raise BadInput(
            f"{'; '.join(found)}: this process was started by {launcher}, so unset "
            "what something else has set"
        )


def _refuse_impossible(env: DistEnv) -> None:
    """Numbers that no process can have."""
    names = {"local_world_size": "SLURM_STEP_TASKS_PER_NODE", **VARIABLES[env.launcher]}
    for small, large, most in (
        ("rank", "world_size", env.world_size - 1),
        ("local_rank", "local_world_size", env.local_world_size - 1),
        ("local_world_size", "world_size", env.world_size),
        ("local_rank", "rank", env.rank),  # a node numbers its ranks in their order
    ):
        value, bound = getattr(env, small), getattr(env, large)
        if value > most:
            relation = "at most" if most == bound else "smaller than"
            raise BadInput(
                f"{names[small]}={value} must be {relation} {names[large]}={bound}"
            )


@dataclass(frozen=True)
class Master:
    """Where rank 0 listens and all ranks connect."""

    address: str
    port: int
    chosen_by: str  # for the reader: where address and port come from


def find_master(env: DistEnv, environ: Mapping[str, str] = os.environ) -> Master:
    """MASTER_ADDR and MASTER_PORT, or what all ranks work out alike; or BadInput."""
    address, of_address = _address(env, environ)
    port, of_port = _port(env, environ)
    chosen = dict.fromkeys([of_address, of_port])  # once, if both are the same
    return Master(address, port, "; ".join(chosen))


def _address(env: DistEnv, environ: Mapping[str, str]) -> tuple[str, str]:
    one_node = env.local_world_size == env.world_size
    given = environ.get("MASTER_ADDR")
    if given:
        # Two "nodes" of torchrun may well share a laptop; those of srun may not.
        here = given == "localhost" or given.startswith("127.") or given == "::1"
        if here and not one_node and env.launcher not in ("torchrun", "by hand"):
            raise BadInput(
                f"MASTER_ADDR={given} means another machine on every node, and only "
                f"{env.local_world_size} of the {env.world_size} processes run on this "
                "one: set it to the host of rank 0"
            )
        return given, "from the environment"
    if env.launcher != "torchrun" and one_node:
        return "127.0.0.1", "all ranks on this node"
    name = "SLURM_STEP_NODELIST" if env.launcher == "srun" else "SLURM_JOB_NODELIST"
    if env.launcher == "torchrun" or name not in environ:
        raise BadInput(
            "MASTER_ADDR is not set and nothing else says where rank 0 runs: export "
            "MASTER_ADDR=HOST_OF_RANK_0 (with mpirun: -x MASTER_ADDR=HOST_OF_RANK_0)"
        )
    # n[07-12,20],m1 is Slurm's way to write n07, n08, ... m1
    hosts = re.sub(r"\[([^],-]+)[^]]*\]", r"\1", environ[name])
    return hosts.split(",")[0], f"first host of {name}"


def _port(env: DistEnv, environ: Mapping[str, str]) -> tuple[int, str]:
    if environ.get("MASTER_PORT"):
        port = read_number("MASTER_PORT", environ)
        if not 0 < port < 65536:
            raise BadInput(f"MASTER_PORT={port} is not a port: 1 to 65535")
        return port, "from the environment"
    if env.world_size == 1:
        # not 0, which PyTorch takes from 2.8 on
        return reserve_port(), "any free port"
    # One number for all ranks of this job, another one for the job beside it. Linux
    # hands out 32768 and above to clients, so the port is taken from below that.
    for names in ("PMIX_NAMESPACE", "SLURM_JOB_ID SLURM_STEP_ID", "PBS_JOBID"):
        if all(name in environ for name in names.split()):
            job = ".".join(environ[name] for name in names.split())
            port = 20000 + zlib.crc32(job.encode()) % 10000
            return port, f"port from {names.split()[0]}"
    return 29500, "port 29500, the usual one, for want of a job number"


reserved: list[socket.socket] = []  # until this process ends


def reserve_port() -> int:
    """A port of this machine for rank 0 to listen on, which no one else is given.

    A port that is only found free may be another connection's before rank 0 listens.
    So a socket stays bound to it, and never listens: Linux leaves the port to a server
    that sets SO_REUSEADDR, as PyTorch's does, and gives it to no one as a free one.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    port = holder.getsockname()[1]
    if sys.platform == "linux":
        reserved.append(holder)
    else:
        holder.close()
    return port
