"""Find the line that makes a training run wrong without any error.

The ranks train one model with DDP. The loss falls, all ranks print the same losses, and
nothing is reported. But the losses differ from those of one process that trains on the
same batches, from the second step on. Exactly one line of the loop is wrong.

Before you look for it, ask what must be equal on all ranks after each step: the
weights, because all ranks start with equal weights and take equal steps. Print their
sum on each rank, and see after which line they differ.

Keep the rest of the loop as it is: zero the gradients in every step, choose the order
by the epoch, and report each epoch's mean loss over all ranks' images.

    workshop check 19_wrong_loss

The page is docs/lessons/19_when_it_breaks/1_find.rst.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SEED = 7


def train(
    model: nn.Module, dataset: Dataset, epochs: int, batch_size: int, lr: float
) -> list[float]:
    """Train ``model`` on all ranks; the mean loss of each epoch, equal on every rank.

    ``batch_size`` is that of one rank. The images divide evenly into the batches of all
    ranks. The optimizer is plain SGD.
    """
    ddp_model = DDP(model)
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=lr)
    sampler = DistributedSampler(dataset, shuffle=True, seed=SEED)
    loader = DataLoader(dataset, batch_size, sampler=sampler)
    history = []
    # TODO 1 of 1: one line below is wrong. Delete the `raise`, find it, and repair it.
    # [start answer 1]
    # ~ for epoch in range(epochs):
    # ~     sampler.set_epoch(epoch)
    # ~     total = torch.zeros(2, dtype=torch.float64)
    # ~     for images, labels in loader:
    # ~         optimizer.zero_grad()
    # ~         loss = F.cross_entropy(model(images), labels)
    # ~         loss.backward()
    # ~         optimizer.step()
    # ~         total[0] += loss.item() * len(labels)
    # ~         total[1] += len(labels)
    # ~     dist.all_reduce(total)
    # ~     history.append(float(total[0] / total[1]))
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2, dtype=torch.float64)
        for images, labels in loader:
            optimizer.zero_grad()
            # through DDP, or its backward pass averages no gradient
            loss = F.cross_entropy(ddp_model(images), labels)
            loss.backward()
            optimizer.step()
            total[0] += loss.item() * len(labels)
            total[1] += len(labels)
        dist.all_reduce(total)
        history.append(float(total[0] / total[1]))
    # [end answer 1]
    return history
