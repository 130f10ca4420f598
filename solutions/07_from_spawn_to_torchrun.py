"""Turn a program that starts its own ranks into one that torchrun starts.

The skeleton shows, after each ``raise``, the lines of the old program. It started two
ranks on one machine by ``mp.spawn``, which called ``run_rank`` with the number of the
rank. From now on torchrun starts the processes, on any number of nodes, and each calls
``main`` once. Everything they need is in their environment::

    RANK, WORLD_SIZE            of all nodes
    LOCAL_RANK                  of this node: which of its devices is mine
    MASTER_ADDR, MASTER_PORT    where all meet; init_process_group reads both itself

Three things remain to be done: find the place in the world, let one rank of *all* nodes
save, and leave in good order: the DDP object must be gone before the process group is.
``train`` is right as it is.

    workshop check 07_from_spawn_to_torchrun

The page is docs/lessons/07_torchrun.rst.
"""

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def choose_device(local_rank: int) -> torch.device:
    """The accelerator of this number on this node, or the CPU."""
    if torch.accelerator.is_available():
        torch.accelerator.set_device_index(local_rank)
        return torch.device(torch.accelerator.current_accelerator().type, local_rank)
    return torch.device("cpu")


def setup() -> torch.device:
    """Join the process group; the device that this rank computes on."""
    # TODO 1 of 3: nothing is decided here, torchrun has decided it all.
    # [start answer 1]
    # ~ os.environ["MASTER_ADDR"] = "127.0.0.1"
    # ~ os.environ["MASTER_PORT"] = "12355"
    # ~ dist.init_process_group("gloo", rank=rank, world_size=2)
    # ~ return choose_device(rank)
    dist.init_process_group("gloo")
    return choose_device(int(os.environ["LOCAL_RANK"]))
    # [end answer 1]


def save(model: nn.Module, path: Path) -> None:
    """Write the weights once; when this returns, on any rank, they are there."""
    # TODO 2 of 3: the nodes share the disk, and there is a first rank on each.
    # [start answer 2]
    # ~ if rank == 0:
    # ~     torch.save(model.state_dict(), path)
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    # [end answer 2]


def train(device: torch.device, path: Path) -> None:
    """A few steps on other data for each rank, then save."""
    torch.manual_seed(0)
    model = nn.Linear(5, 3, dtype=torch.float64).to(device)
    ddp_model = DDP(model, None if device.type == "cpu" else [device])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        data = torch.Generator().manual_seed(step * 1000 + dist.get_rank())
        x = torch.randn(8, 5, dtype=torch.float64, generator=data).to(device)
        optimizer.zero_grad()
        F.mse_loss(ddp_model(x), x[:, :3].cumsum(dim=1)).backward()
        optimizer.step()
    save(model, path)


def main(path: Path) -> None:
    """What each process does, from its start to its end."""
    # TODO 3 of 3: set up, train, leave the group.
    # [start answer 3]
    # ~ import torch.multiprocessing as mp
    # ~
    # ~ mp.spawn(run_rank, args=(path,), nprocs=2)
    device = setup()
    train(device, path)
    dist.destroy_process_group()
    # [end answer 3]
