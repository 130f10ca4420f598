"""Finish the training loop: one optimizer step for several micro-batches.

A batch that doesn't fit into memory is cut into micro-batches of equal size. Their
gradients add up in ``.grad``, and the optimizer takes one step per *group* of
``accumulate`` micro-batches. Divide each loss by the number of micro-batches in its
group, and the gradients add up to the gradient of the whole group's mean. If
``accumulate`` doesn't divide the number of micro-batches, the last group is smaller,
and it gets its step, too. ``.grad`` may hold leftovers when the function is called.
They must not change the result.

    workshop check 01_training_loop

The page is docs/lessons/01_one_device/1_one_step.rst.
"""

import torch
import torch.nn.functional as F
from torch import nn

Batch = tuple[torch.Tensor, torch.Tensor]  # inputs [B, ...], targets [B]


def group_size(index: int, total: int, accumulate: int) -> int:
    """How many micro-batches are in the group of micro-batch number ``index``.

    ``total`` micro-batches, numbered from 0, are cut into groups of ``accumulate``.
    Only the last group may hold fewer. With total 7 and accumulate 3 the groups are
    0 1 2, 3 4 5 and 6, so the size is 3 for the indices 0 to 5 and 1 for index 6.
    """
    # TODO 1 of 2: return the size of the group that micro-batch `index` is in.
    raise NotImplementedError("TODO 1 of 2")


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: list[Batch],
    accumulate: int,
) -> float:
    """Train on all micro-batches, and return the mean of their losses."""
    model.train()
    losses = []
    for index, (inputs, targets) in enumerate(batches):
        loss = F.cross_entropy(model(inputs), targets)
        losses.append(loss.detach())
        size = group_size(index, len(batches), accumulate)
        # TODO 2 of 2: empty .grad at the start of a group, add this micro-batch's
        # share of the gradient, and step at the end of a group.
        raise NotImplementedError("TODO 2 of 2")
    return torch.stack(losses).mean().item()
