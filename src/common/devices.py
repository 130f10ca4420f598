"""Which device a process computes on, and which backend its ranks talk through.

One accelerator per process where there are accelerators, else one core of the CPU. To
stay on the CPU of a machine with NVIDIA GPUs, hide them: ``CUDA_VISIBLE_DEVICES=``
before the command. For more cores per process set ``OMP_NUM_THREADS``.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

# Imported only so that it comes before init_process_group: its functions take the
# default group of that moment as a default argument. Imported later, as optimizers
# and DDP do on their first use, it keeps the group and its threads alive after
# destroy_process_group, and a rank now and then aborts when Python ends ("terminate
# called without an active exception", torch 2.13 with gloo).
import torch.distributed.nn.functional

from common.cli import BadInput
from common.distributed import find_launcher


def choose_device(local_rank: int = 0) -> torch.device:
    """The accelerator number ``local_rank`` of this machine, else one core of the CPU.

    The local rank counts the processes on one machine, as device numbers do; the
    rank counts them over all machines and soon exceeds the number of devices.

    Device 0 where the launcher shows each process only its own device: ``srun
    --gpu-bind=single:1``, and many a script around ``mpirun``.

    Raises:
        BadInput: there are accelerators, but fewer than processes.
    """
    if not torch.accelerator.is_available():
        return _one_core()
    accelerator = torch.accelerator.current_accelerator()
    # Apple's MPS has one device, no float64, and no backend of its own
    if accelerator is None or accelerator.type == "mps":
        return _one_core()
    count = torch.accelerator.device_count()
    if _only_mine_is_shown():
        local_rank = 0
    if local_rank >= count:
        raise BadInput(
            f"local rank {local_rank} has no {accelerator.type} device: this machine "
            f"has {count}, so start at most {count} processes on it, or hide them all "
            "(CUDA_VISIBLE_DEVICES= on NVIDIA) to compute on the CPU"
        )
    # collectives and "cuda" without a number go to the current device
    torch.accelerator.set_device_index(local_rank)
    return torch.device(accelerator.type, local_rank)


def _only_mine_is_shown() -> bool:
    """Whether the launcher has hidden all devices but this process's own."""
    if find_launcher(os.environ) not in ("srun", "Open MPI", "MPICH"):
        return False  # torchrun tells all its processes the same
    names = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
    shown = [os.environ[name] for name in names if os.environ.get(name)]
    return any("," not in devices for devices in shown)


def _one_core() -> torch.device:
    # The processes of a node share its cores. Without a limit each starts a thread
    # for every core, and threads that wait for a core make small layers very slow.
    # torchrun sets the limit for the processes it starts; here, the others get it.
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    return torch.device("cpu")


def choose_backend(device: torch.device) -> str:
    """The backend whose collectives move tensors of ``device``.

    ``nccl`` for NVIDIA and AMD GPUs, ``xccl`` for Intel's, ``gloo`` for the CPU.
    """
    return dist.get_default_backend_for_device(device.type)


def device_label(device: torch.device) -> str:
    """A short name for the lines of a log: ``CPU0``, ``CUDA3``."""
    return f"{device.type.upper()}{device.index or 0}"


def describe(device: torch.device) -> str:
    """A sentence part on the device, for the line that shows the configuration."""
    if device.type == "cpu":
        threads = torch.get_num_threads()
        return f"CPU, {threads} thread{'s' if threads > 1 else ''}"
    name = getattr(torch, device.type).get_device_name(device.index)
    return f"{device} ({name})"
