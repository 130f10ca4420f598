"""Where the ranks meet when the launcher does not say: read from the environment.

    from common.rendezvous import find_master
    master = find_master(env)  # env as dist_env.get_dist_env() returns it

torchrun sets MASTER_ADDR and MASTER_PORT. srun and mpirun do not: every rank then
works out the same address and the same port from what it was told.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from common.launchers import DistEnv, DistEnvError, read_number


@dataclass(frozen=True)
class Master:
    """Where rank 0 listens and all ranks meet."""

    address: str
    port: int  # 0: any free one, because nobody else has to know it
    chosen_by: str  # for the reader: where address and port come from


def find_master(env: DistEnv, environ: Mapping[str, str] = os.environ) -> Master:
    """MASTER_ADDR and MASTER_PORT, or what all ranks can work out alike without them.

    Raises:
        DistEnvError: a value cannot be right, or nothing says where rank 0 runs.
    """
    address, of_address = _address(env, environ)
    port, of_port = _port(env, environ)
    chosen = of_address if of_address == of_port else f"{of_address}; {of_port}"
    return Master(address, port, chosen)


def _address(env: DistEnv, environ: Mapping[str, str]) -> tuple[str, str]:
    one_node = env.local_world_size == env.world_size
    given = environ.get("MASTER_ADDR")
    if given:
        # Two "nodes" of torchrun may well share a laptop; those of srun may not.
        here = given == "localhost" or given.startswith("127.") or given == "::1"
        if here and not one_node and env.launcher not in ("torchrun", "by hand"):
            raise DistEnvError(
                f"MASTER_ADDR={given} means another machine on every node, and only "
                f"{env.local_world_size} of the {env.world_size} processes run on this "
                "one: set it to the host of rank 0"
            )
        return given, "from the environment"
    if env.launcher != "torchrun" and one_node:
        return "127.0.0.1", "all ranks on this node"
    name = "SLURM_STEP_NODELIST" if env.launcher == "srun" else "SLURM_JOB_NODELIST"
    if env.launcher == "torchrun" or name not in environ:
        raise DistEnvError(
            "MASTER_ADDR is not set and nothing else says where rank 0 runs: export "
            "MASTER_ADDR=HOST_OF_RANK_0 (with mpirun: -x MASTER_ADDR=HOST_OF_RANK_0)"
        )
    return _first_host(environ[name]), f"first host of {name}"


def _first_host(hosts: str) -> str:
    """``n[07-12,20],m1`` is Slurm's way to write n07, n08, ... m1."""
    return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", hosts).split(",")[0]


def _port(env: DistEnv, environ: Mapping[str, str]) -> tuple[int, str]:
    if environ.get("MASTER_PORT"):
        port = read_number(environ, "MASTER_PORT")
        if not 0 < port < 65536:
            raise DistEnvError(f"MASTER_PORT={port} is not a port: 1 to 65535")
        return port, "from the environment"
    if env.world_size == 1:
        return 0, "any free port"
    # One number for all ranks of this job, another one for the job beside it. Linux
    # hands out 32768 and above to clients, so the port is taken from below that.
    for names in (
        ("PMIX_NAMESPACE",),
        ("SLURM_JOB_ID", "SLURM_STEP_ID"),
        ("PBS_JOBID",),
    ):
        if all(name in environ for name in names):
            job = ".".join(environ[name] for name in names)
            return 20000 + zlib.crc32(job.encode()) % 10000, f"port from {names[0]}"
    return 29500, "port 29500, the usual one, for want of a job number"
