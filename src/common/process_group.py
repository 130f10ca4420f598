"""How a rank takes its device and joins the other ranks."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from common import distributed, launchers

# These take one tensor with the pieces of all ranks. Before 2.13 they have only their
# old names, of which PyTorch warns since.
if torch.__version__ >= (2, 13):
    from torch.distributed import all_gather_single, reduce_scatter_single
else:
    from torch.distributed import all_gather_into_tensor as all_gather_single
    from torch.distributed import reduce_scatter_tensor as reduce_scatter_single

__all__ = [
    "all_gather_single",
    "join",
    "join_on",
    "join_or_alone",
    "join_partners",
    "reduce_scatter_single",
    "refuse_messages_between_shared",
]


def join(
    local_rank: int,
    *,
    rank: int = -1,
    world_size: int = -1,
    timeout: timedelta | None = None,
    store: dist.Store | None = None,
) -> torch.device:
    """Take this rank's device and join the other ranks: every rank calls this.

    Without ``rank`` and ``world_size``, the environment says them, as torchrun sets
    RANK and WORLD_SIZE. Ranks meet at MASTER_ADDR and MASTER_PORT, or in ``store``.
    ``timeout`` is how long a rank waits in a collective; None is PyTorch's default.

    Returns:
        accelerator number ``local_rank`` of this machine, or the CPU.

    Raises:
        BadInput: this machine has accelerators, but fewer than the local rank needs;
            or no connection to rank 0.
    """
    device = distributed.choose_device(local_rank)
    try:
        join_on(device, rank=rank, world_size=world_size, timeout=timeout, store=store)
    except (dist.DistNetworkError, dist.DistStoreError) as error:
        first_line = str(error).partition("\n")[0]
        raise distributed.BadInput(
            f"are MASTER_ADDR and MASTER_PORT right? No connection: {first_line}"
        ) from error
    return device


def join_on(
    device: torch.device,
    *,
    rank: int = -1,
    world_size: int = -1,
    timeout: timedelta | None = None,
    store: dist.Store | None = None,
    bound: bool = True,
) -> None:
    """Join the other ranks as :func:`join` does, on a device that is already chosen.

    ``bound``: NCCL connects at once, and refuses tensors of another device. False: a
    rank has several.

    Raises:
        BadInput: another rank has the same device.
        RuntimeError: the ranks did not meet, in PyTorch's own words.
    """
    backend = dist.get_default_backend_for_device(device)
    gpu = None if device.type == "cpu" else device  # NCCL connects to it at once
    if gpu and distributed.shares_devices():
        backend, gpu = "gloo", None  # NCCL refuses two ranks on a device
    if gpu and store is None and world_size != 1:
        # as init_process_group would, but NCCL doesn't start yet
        wait = timeout or dist.default_pg_timeout
        store, rank, world_size = next(
            rendezvous("env://", rank, world_size, timeout=wait)
        )
        refuse_shared_device(store, gpu)
    if not bound:
        gpu = None
    # every rank must reach this line: with gloo it returns when the last has joined
    dist.init_process_group(
        backend,
        timeout=timeout,
        world_size=world_size,
        rank=rank,
        store=store,
        device_id=gpu,
    )


def refuse_shared_device(store: dist.Store, device: torch.device) -> None:
    """Each rank writes down its device, before NCCL refuses the same in many lines.

    Raises:
        BadInput: another rank was here before with the same one.
    """
    properties = torch.get_device_module(device).get_device_properties(device)
    uuid = getattr(properties, "uuid", None)
    # torchrun may keep the store when it starts the ranks again
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if uuid and store.add(f"attempt {attempt}, ranks on {uuid}", 1) > 1:
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
        raise distributed.BadInput(
            f"two ranks have the same {device.type} device (CUDA_VISIBLE_DEVICES="
            f"{seen}): start one rank for each, and let the launcher set this variable"
        )


def join_partners(
    program: str, timeout: timedelta | None = timedelta(seconds=60)
) -> torch.device:
    """Join the other ranks that torchrun has started; returns this rank's device.

    ``program`` is what follows ``src/`` in the command that the error shows.

    Raises:
        BadInput: torchrun has started one rank only, or none.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        raise distributed.BadInput(
            "a single rank has no partner: start at least two, for example with "
            f"torchrun --standalone --nproc-per-node=4 src/{program}"
        )
    device = join(launchers.read_number("LOCAL_RANK"), timeout=timeout)
    ranks = dist.get_world_size()
    distributed.log(f"{ranks} ranks on {device.type} through {dist.get_backend()}")
    return device


def join_or_alone(
    trivial: str,
    timeout: timedelta | None = timedelta(seconds=60),
    announce: bool = True,
) -> torch.device:
    """Join the other ranks, if torchrun has started any; returns this rank's device.

    A rank alone, started by torchrun or by plain python, has a group of one. It prints
    the sentence ``trivial``, which says what that leaves of the program's method.
    ``announce``: with several ranks, print how many.

    Raises:
        BadInput: another launcher has started several ranks.
    """
    if "RANK" in os.environ:
        # every rank must reach this line
        device = join(launchers.read_number("LOCAL_RANK"), timeout=timeout)
    else:
        _refuse_other_launchers()
        store = dist.HashStore()
        device = join(0, rank=0, world_size=1, timeout=timeout, store=store)
    ranks = dist.get_world_size()
    if ranks == 1:
        distributed.log(f"One rank on {device.type}: {trivial}")
    elif announce:
        distributed.log(f"{ranks} ranks on {device.type} through {dist.get_backend()}")
    return device


def _refuse_other_launchers() -> None:
    """Ranks that don't read their launcher's variables would each run alone."""
    env = launchers.get_dist_env()
    if env.world_size > 1:
        raise distributed.BadInput(
            f"{env.launcher} has started {env.world_size} processes, and each would "
            "run alone, as RANK is not set: let it start one torchrun on each node"
        )


def refuse_messages_between_shared(device: torch.device) -> None:
    """For programs that send a device's tensors from rank to rank; all ranks call this.

    Raises:
        BadInput: the ranks share a device, so the group uses gloo, whose send and
            recv read only memory of the CPU.
    """
    several = dist.get_world_size() > 1
    if several and device.type != "cpu" and distributed.shares_devices():
        raise distributed.BadInput(
            f"gloo can't send a tensor of {device.type} from one rank to another: "
            f"unset {distributed.SHARE}, or hide the devices to compute on the CPU"
        )
