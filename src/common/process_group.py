"""How the programs that torchrun starts join the other ranks."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist

from common.distributed import (
    BadInput,
    choose_backend,
    choose_device,
    log,
    torchrun_local_rank,
    world_size,
)


def join(program: str) -> torch.device:
    """Join the other ranks that torchrun has started; returns this rank's device."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        raise BadInput(
            "one rank has nobody to talk to: start at least two, for example with "
            f"torchrun --standalone --nproc-per-node=4 src/{program}"
        )
    device = choose_device(torchrun_local_rank())
    backend = choose_backend(device)
    gpu = None if device.type == "cpu" else device  # NCCL connects to it at once
    # every rank must reach this line: it returns when the last one has joined
    dist.init_process_group(backend, timeout=timedelta(seconds=60), device_id=gpu)
    log(f"{world_size()} ranks on {device.type} through {backend}")
    return device
