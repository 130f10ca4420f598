"""Port a training program from one device to DDP.

Below the ``raise`` lines is a program for one process. If you started it as it is, each
rank would train its own model on all images. Change it so that the ranks train one
model together:

* Each rank reads its own share of the images. Together the ranks read every image, and
  all ranks take the same number of steps. Every epoch has a different order, chosen by
  ``SEED`` and the epoch.
* All ranks start with the weights of rank 0, and still hold equal weights after every
  step: gradients are averaged over the ranks.

``batch_size`` is that of one rank, as in ``src/05_ddp_spawn.py``. The ranks compute on
the CPU, so the backend is ``"gloo"`` and DDP gets no ``device_ids``.

    workshop check 05_port_to_ddp

The page is docs/lessons/05_ddp_spawn/2_wrap.rst.
"""

from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SEED = 7
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def setup(rank: int, world_size: int) -> None:
    """Join the process group, as process ``rank`` of ``world_size``.

    MASTER_ADDR and MASTER_PORT are in the environment. Nothing else is: mp.spawn
    passes the rank only as this argument.
    """
    # TODO 1 of 3: one call, which the program for one process did not need.
    raise NotImplementedError("TODO 1 of 3")


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches of this rank's share of the images; called once per run."""
    # TODO 2 of 3: let a DistributedSampler with seed=SEED choose share and order.
    raise NotImplementedError("TODO 2 of 3")
    generator = torch.Generator().manual_seed(SEED)
    return DataLoader(dataset, batch_size, shuffle=True, generator=generator)


def train(
    model: nn.Module,
    dataset: Dataset,
    epochs: int,
    batch_size: int,
    make_optimizer: MakeOptimizer = torch.optim.AdamW,
) -> None:
    """Train ``model`` in place. Every rank must call it, with a model of one shape."""
    loader = make_loader(dataset, batch_size)
    # TODO 3 of 3: wrap the model, give every epoch its order, and compute the loss so
    # that DDP averages the gradients.
    raise NotImplementedError("TODO 3 of 3")
    optimizer = make_optimizer(model.parameters())
    for epoch in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
