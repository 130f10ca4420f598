"""How the programs that torchrun starts join the other ranks."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist

from common import distributed

# These take one tensor with the pieces of all ranks. Before 2.13 they have only their
# old names, of which PyTorch warns since.
if torch.__version__ >= (2, 13):
    from torch.distributed import all_gather_single, reduce_scatter_single
else:
    from torch.distributed import all_gather_into_tensor as all_gather_single
    from torch.distributed import reduce_scatter_tensor as reduce_scatter_single

__all__ = ["all_gather_single", "join", "reduce_scatter_single"]


def join(
    program: str, timeout: timedelta | None = timedelta(seconds=60)
) -> torch.device:
    """Join the other ranks that torchrun has started; returns this rank's device.

    ``timeout`` is how long a rank waits in a collective; None is PyTorch's default.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        raise distributed.BadInput(
            "a single rank has no partner: start at least two, for example with "
            f"torchrun --standalone --nproc-per-node=4 src/{program}"
        )
    device = distributed.choose_device(distributed.read_number("LOCAL_RANK"))
    backend = dist.get_default_backend_for_device(device)
    gpu = None if device.type == "cpu" else device  # NCCL connects to it at once
    # every rank must reach this line: it returns when the last one has joined
    dist.init_process_group(backend, timeout=timeout, device_id=gpu)
    ranks = dist.get_world_size()
    distributed.log(f"{ranks} ranks on {device.type} through {backend}")
    return device
