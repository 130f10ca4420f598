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
from datetime import timedelta

import torch
import torch.distributed as dist

from common.cli import BadInput
from common.devices import choose_backend, choose_device
from common.distributed import DistEnv, DistEnvError, get_dist_env, read_number
from common.logging import log


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


def meet(env: DistEnv, master: Master, backend: str, timeout_s: int) -> None:
    """Wait until all ranks have arrived; from here on collectives work.

    Raises:
        BadInput: they did not all arrive, or rank 0 cannot listen.
    """
    # What torchrun sets for its processes; under other launchers we do.
    os.environ["MASTER_ADDR"] = master.address
    os.environ["MASTER_PORT"] = str(master.port)
    try:
        # every rank must reach this line: it returns when the last one has come
        dist.init_process_group(
            backend,
            rank=env.rank,
            world_size=env.world_size,
            timeout=timedelta(seconds=timeout_s),
        )
    except RuntimeError as error:
        raise BadInput(why_not_met(env, master, timeout_s, error)) from error


def why_not_met(env: DistEnv, master: Master, timeout_s: int, error: Exception) -> str:
    """One sentence for the ways in which a rendezvous fails."""
    if not isinstance(error, dist.DistError):  # the backend, not the meeting point
        reason = str(error).partition("\n")[0].rpartition("] ")[2]
        return (
            f"rank {env.rank} cannot start its backend ({reason}): "
            "is every NCCL_* and GLOO_* variable right?"
        )
    place = f"{master.address}:{master.port} ({master.chosen_by})"
    if "EADDRINUSE" in str(error):
        return f"{place} is taken by another program: set MASTER_PORT to another port"
    return (
        f"rank {env.rank} of {env.world_size} waited {timeout_s} s at {place} in "
        "vain: not all ranks came; is MASTER_ADDR the host of rank 0, can the other "
        "nodes reach it, and did every process start?"
    )


def meet_others(script: str, timeout_s: int = 60) -> torch.device:
    """Start the backend as 02_hello_ranks.py does; return this rank's device.

    Raises:
        BadInput: this is a world of one rank, or the ranks cannot meet.
    """
    env = get_dist_env()
    if env.world_size < 2:
        raise BadInput(
            "one rank has nobody to talk to: start at least two, for example with "
            f"torchrun --standalone --nproc-per-node=4 src/{script}"
        )
    device = choose_device(env.local_rank)
    backend = choose_backend(device)
    meet(env, find_master(env), backend, timeout_s)
    if env.rank == 0:
        print(f"{env.world_size} ranks on {device.type} through {backend}", flush=True)
    return device


def join(timeout_s: int = 60) -> torch.device:
    """Meet the other ranks, if there are any; returns this rank's device.

    Raises:
        BadInput: the ranks cannot meet.
    """
    env = get_dist_env()
    device = choose_device(env.local_rank)
    meet(env, find_master(env), choose_backend(device), timeout_s)
    return device


def get_torchrun_env() -> DistEnv:
    """The place of this process in the world.

    Raises:
        BadInput: torchrun did not start this process.
    """
    env = get_dist_env()
    if env.launcher != "torchrun":
        raise BadInput(
            f"torchrun did not start this process (it was {env.launcher}): "
            "torchrun --standalone --nproc-per-node=2 SCRIPT ..."
        )
    return env


def warn_of_shared_store() -> None:
    """Say so if ranks that torchrun starts again could not meet.

    By default the ranks meet in the key-value store of torchrun itself, which
    outlives them: with gloo, new ranks then now and then find the addresses of dead
    ones. The variable must be set before torchrun starts, so a rank can only warn.
    """
    may_restart = os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0") != "0"
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if may_restart and shared and dist.get_backend() == "gloo":
        log(
            "Warning: with gloo, restarts may fail (Connection refused): "
            "export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 before torchrun"
        )
