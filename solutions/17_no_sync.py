"""Accumulate gradients under DDP, and send them once per step.

One step has several micro-batches, since memory has room for one at a time. DDP reduces
in every backward pass unless you tell it not to, and only the last reduction is needed.
A step here must send each gradient once, and take the step of one large batch.

    workshop check 17_no_sync

The page is docs/lessons/17_speed/1_data_and_steps.rst.
"""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train_step(
    model: DDP,
    optimizer: torch.optim.Optimizer,
    micro_batches: list[tuple[torch.Tensor, torch.Tensor]],
    loss_of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    """One step for all micro-batches of all ranks; every rank calls this.

    Args:
        micro_batches: of this rank, (inputs, targets) each, all of one size.
        loss_of: the mean loss of outputs and targets.
    """
    optimizer.zero_grad()
    count = len(micro_batches)
    for number, (inputs, targets) in enumerate(micro_batches):
        # TODO 1 of 1: run forward and backward so that after the last micro-batch, and
        # not before, each gradient is the mean over all micro-batches of all ranks.
        # [start answer 1]
        last = number == count - 1
        averaging = nullcontext() if last else model.no_sync()
        with averaging:
            loss = loss_of(model(inputs), targets)
            (loss / count).backward()
        # [end answer 1]
    optimizer.step()
