"""Turn a program that starts its own ranks into one that torchrun starts.

After each ``raise``, the skeleton shows the lines of the old program. It started two
ranks on one machine with ``mp.spawn``, which called ``run_rank`` with the rank. Now
torchrun starts the processes, on any number of nodes, maybe more on one node than on
another, and each process calls ``main`` once. Everything they need is in their
environment::

    RANK, WORLD_SIZE            over all nodes
    LOCAL_RANK                  on this node: which of its devices to use
    MASTER_ADDR, MASTER_PORT    where all ranks connect; init_process_group reads both

Three things are left for you. Join the process group. Let one rank of *all* nodes save.
Leave cleanly: the DDP object must be gone before you destroy the process group.
``train`` is right as it is.

    workshop check 07_from_spawn_to_torchrun

The page is docs/lessons/07_torchrun/1_start.rst.
"""

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def choose_device(local_rank: int) -> torch.device:
    """The accelerator with this number on this node, or the CPU."""
    if torch.accelerator.is_available():
        torch.accelerator.set_device_index(local_rank)
        return torch.device(torch.accelerator.current_accelerator().type, local_rank)
    return torch.device("cpu")


def setup() -> torch.device:
    """Join the process group; return this rank's device, from ``choose_device``."""
    # TODO 1 of 3: torchrun has decided everything; decide nothing here.
    # [start answer 1]
    # ~ os.environ["MASTER_ADDR"] = "127.0.0.1"
    # ~ os.environ["MASTER_PORT"] = "12355"
    # ~ dist.init_process_group("gloo", rank=rank, world_size=2)
    # ~ return choose_device(rank)
    dist.init_process_group("gloo")
    return choose_device(int(os.environ["LOCAL_RANK"]))
    # [end answer 1]


def save(model: nn.Module, path: Path) -> None:
    """Write the weights once; when this returns on any rank, the file is there."""
    # TODO 2 of 3: the nodes share the disk, and each node has a first rank.
    # [start answer 2]
    # ~ if rank == 0:
    # ~     torch.save(model.state_dict(), path)
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    # [end answer 2]


def train(device: torch.device, path: Path) -> None:
    """Take a few steps, each rank on its own data, then save."""
    torch.manual_seed(0)
    model = nn.Linear(5, 3, dtype=torch.float64).to(device)
    devices = None if device.type == "cpu" else [device]
    ddp_model = DDP(model, devices)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        data = torch.Generator().manual_seed(step * 1000 + dist.get_rank())
        x = torch.randn(8, 5, dtype=torch.float64, generator=data).to(device)
        optimizer.zero_grad()
        F.mse_loss(ddp_model(x), x[:, :3].cumsum(dim=1)).backward()
        optimizer.step()
    save(model, path)


def main(path: Path) -> None:
    """Everything that each process does."""
    # TODO 3 of 3: set up, train, destroy the group.
    # [start answer 3]
    # ~ import torch.multiprocessing as mp
    # ~
    # ~ mp.spawn(run_rank, args=(path,), nprocs=2)
    device = setup()
    train(device, path)
    dist.destroy_process_group()
    # [end answer 3]
