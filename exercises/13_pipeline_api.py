"""Port a pipeline written by hand to ``torch.distributed.pipelining``.

``step_by_hand`` is a whole step in the order of GPipe: each rank runs all its forwards,
keeps their activations, and then runs all its backwards. Replace it by PyTorch's stages
and 1F1B, which holds fewer micro-batches::

    schedule = make_schedule(layers, micro_batches)   # once, on every rank
    loss = step(schedule, inputs, targets)            # again and again

Each rank has one stage, its ``layers``. All ranks pass the same ``inputs`` and
``targets`` to ``step``, and it must leave the gradients and return the loss that
``step_by_hand`` does. Targets equal to ``PADDING`` don't count, and micro-batches
differ in how many targets do. So the loss is the sum over all targets that count,
divided by the number of such targets in the whole batch.

    workshop check 13_pipeline_api

The page is docs/lessons/13_pipeline_parallel/4_pytorch.rst.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

PADDING = -1


def share_of_loss(scores: Tensor, targets: Tensor, count: int) -> Tensor:
    """What a micro-batch adds to the loss of a batch with ``count`` targets."""
    total = F.cross_entropy(scores, targets, ignore_index=PADDING, reduction="sum")
    return total / count


def step_by_hand(
    layers: nn.Module, inputs: Tensor, targets: Tensor, micro_batches: int
) -> Tensor:
    """Add gradients to ``.grad``; return the loss of the batch, on every rank."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    count = int((targets != PADDING).sum())
    entered, left, loss = [], [], inputs.new_zeros(())
    parts = inputs.chunk(micro_batches), targets.chunk(micro_batches)
    for x, wanted in zip(*parts, strict=True):
        if rank > 0:  # all stages have inputs of the same shape here
            x = torch.empty_like(x)
            dist.recv(x, rank - 1)
        entered.append(x.requires_grad_(rank > 0))
        left.append(layers(x))
        if rank < last:
            dist.send(left[-1].detach(), rank + 1)
        else:
            left[-1] = share_of_loss(left[-1], wanted, count)
            loss += left[-1].detach()
    for x, y in zip(entered, left, strict=True):
        gradient = None
        if rank < last:
            gradient = torch.empty_like(y)
            dist.recv(gradient, rank + 1)
        y.backward(gradient)
        if rank > 0:
            dist.send(x.grad, rank - 1)
    # Every rank: one number, from the last rank to all others.
    dist.broadcast(loss, src=last)
    return loss


def make_schedule(layers: nn.Module, micro_batches: int) -> Schedule1F1B:
    """This rank's stage, and the schedule that runs it."""
    # TODO 1 of 2: wrap ``layers`` as the stage of this rank, on the CPU, and return the
    # schedule that runs it. It calls its loss function with scores and targets only:
    # where does that find the count of this step? Who divides by what?
    raise NotImplementedError("TODO 1 of 2")


def step(schedule: Schedule1F1B, inputs: Tensor, targets: Tensor) -> Tensor:
    """Add gradients to ``.grad``; return the loss of the batch, on every rank."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    # TODO 2 of 2: call the schedule's step with what this rank has to pass, and return
    # the loss, which only the last rank can compute.
    raise NotImplementedError("TODO 2 of 2")
