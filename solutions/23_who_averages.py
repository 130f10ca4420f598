"""Decide what ranks average after their local steps, and what each rank keeps.

Each rank has trained its own copy of a model for some steps, with its own optimizer.
Now the ranks average their copies, as in local SGD:

* Parameters that were trained are averaged, also if their gradients are None by now.
  Frozen ones are equal on all ranks, and need not be sent.
* Floating-point buffers, such as the running statistics of batch normalization, are
  averaged: each rank has seen other data. So are those that no state dict has. Buffers
  of whole numbers or of bools count or mask something, have no mean, and stay.
* The inner optimizer's state stays on its rank, and still knows the same parameters.

A snapshot must let every rank continue as if nothing had happened.

    workshop check 23_who_averages

The page is docs/lessons/23_loose_coupling/1_few_messages.rst.
"""

import torch
import torch.distributed as dist
from torch import nn


@torch.no_grad()
def average_copies(model: nn.Module) -> None:
    """Make the ranks' copies one, in place. Every rank calls this.

    A parameter that two modules use is one parameter.
    """
    # TODO 1 of 2
    # [start answer 1]
    trained = [p for p in model.parameters() if p.requires_grad]
    statistics = [b for b in model.buffers() if b.is_floating_point()]
    for tensor in [*trained, *statistics]:
        dist.all_reduce(tensor)  # every rank; [shape] -> [shape]
        tensor /= dist.get_world_size()
    # [end answer 1]


def whole_snapshot(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps_run: int
) -> dict | None:
    """What rank 0 writes; None on the other ranks. Every rank calls this.

    It may be called between two averages. Returns ``{"steps_run": steps_run, "ranks":
    [...]}`` with ``{"model": ..., "optimizer": ...}`` of each rank, in order: state
    dicts.
    """
    # TODO 2 of 2
    # [start answer 2]
    own = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, own)  # every rank
    if dist.get_rank() > 0:
        return None
    return {"steps_run": steps_run, "ranks": ranks}
    # [end answer 2]
