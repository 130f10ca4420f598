"""Print who each process is: host, rank, local rank, world size, device.

    python src/02_hello_ranks.py                                      # a world of 1
    torchrun --standalone --nproc-per-node=4 src/02_hello_ranks.py
    mpirun -np 4 python src/02_hello_ranks.py                         # Open MPI, MPICH
    srun --nodes=2 --ntasks-per-node=4 python src/02_hello_ranks.py   # Slurm

Run this first on any machine that is new to you. It prints what the launcher told each
process, the settings of the backend, and the result of one all_reduce.
"""

from __future__ import annotations

import os
import socket
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

from common.distributed import (
    BadInput,
    Parser,
    choose_device,
    one_line_errors,
    positive_int,
)
from common.launchers import DistEnv, Master, find_master, get_dist_env
from common.process_group import join_on


def meet(env: DistEnv, master: Master, timeout_s: int) -> torch.device:
    """Wait until all ranks have joined; returns this rank's device.

    Raises:
        BadInput: they have not, within ``timeout_s`` seconds, or there is no device.
    """
    # torchrun sets these for its processes; under other launchers we do.
    os.environ["MASTER_ADDR"] = master.address
    os.environ["MASTER_PORT"] = str(master.port)
    device = choose_device(env.local_rank)
    timeout = timedelta(seconds=timeout_s)
    try:
        # every rank must reach this line: with gloo it returns when all have joined
        join_on(device, rank=env.rank, world_size=env.world_size, timeout=timeout)
    except RuntimeError as error:
        raise BadInput(why_not_met(env, master, timeout_s, error)) from error
    return device


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
        f"rank {env.rank} of {env.world_size} gave up after {timeout_s} s at {place}: "
        "not all ranks joined; is MASTER_ADDR the host of rank 0, can the other nodes "
        "reach it, and did every process start?"
    )


def backend_settings() -> dict[str, str]:
    """The environment variables that steer NCCL and gloo."""
    prefixes = ("NCCL_", "TORCH_NCCL_", "GLOO_")
    return {k: v for k, v in sorted(os.environ.items()) if k.startswith(prefixes)}


def my_line(env: DistEnv, device: torch.device) -> str:
    """What this process knows about itself."""
    node = "?" if env.node_rank is None else env.node_rank
    return (
        f"rank {env.rank} of {env.world_size} | node rank {node} | "
        f"local rank {env.local_rank} of {env.local_world_size} | "
        f"{device.type.upper()}{device.index or 0} | host {socket.gethostname()}"
    )


def print_in_rank_order(env: DistEnv, device: torch.device) -> None:
    """Rank 0 prints for all: the lines of several processes would mix."""
    own = (my_line(env, device), backend_settings())
    everyone: list | None = [None] * env.world_size if env.rank == 0 else None
    # every rank -> rank 0, one pickled object of some hundred bytes each
    dist.gather_object(own, everyone, dst=0)
    if everyone is None:
        return
    for line, _ in everyone:
        print(line)
    print_settings([settings for _, settings in everyone])


def print_settings(settings: list[dict[str, str]]) -> None:
    """Each setting once; with its ranks if not all of them have it."""
    if not any(settings):
        print("no NCCL_* or GLOO_* variable is set")
    for pair in sorted({pair for one in settings for pair in one.items()}):
        ranks = [r for r, one in enumerate(settings) if pair in one.items()]
        only = "" if len(ranks) == len(settings) else f"   (only on ranks {ranks})"
        print(f"{pair[0]}={pair[1]}{only}")


def check_sum(env: DistEnv, device: torch.device) -> None:
    """One all_reduce whose result is known: 0 + 1 + ... + (N - 1)."""
    total = torch.tensor([env.rank], device=device)
    dist.all_reduce(total)  # every rank; [1] -> [1], SUM; 8 bytes
    expected = env.world_size * (env.world_size - 1) // 2
    if env.rank == 0:
        print(f"sum of all ranks: {total.item()}, expected: {expected}")
    if total.item() != expected:
        sys.exit(1)


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    seconds = {"metavar": "SECONDS", "type": positive_int, "default": 60}
    how_long = "how long to wait for the other ranks, in seconds (default: %(default)s)"
    parser.add_argument("--timeout", **seconds, help=how_long)
    args = parser.parse_args()

    # [start who]
    env = get_dist_env()
    master = find_master(env)
    device = meet(env, master, args.timeout)
    if env.rank == 0:
        print(f"launcher: {env.launcher} | backend: {dist.get_backend()}")
        print(f"met at {master.address}:{master.port} ({master.chosen_by})")
    print_in_rank_order(env, device)
    check_sum(env, device)
    dist.destroy_process_group()
    # [end who]


if __name__ == "__main__":
    main()
