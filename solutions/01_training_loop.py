"""Finish the training loop: one optimizer step for several micro-batches.

A batch that does not fit into memory at once is cut into micro-batches. Their
gradients add up in ``.grad``, and the optimizer steps once for ``accumulate`` of
them: a group. Dividing each loss by the number of micro-batches in its group makes
the sum of their gradients the gradient of the whole group's mean. The last group is
smaller when ``accumulate`` does not divide the number of micro-batches; it counts,
too. All micro-batches hold equally many images. ``.grad`` may hold leftovers
when the function is called; they must not change the result.

    workshop check 01_training_loop

The page is docs/lessons/01_one_device.rst.
"""

import torch
import torch.nn.functional as F
from torch import nn

Batch = tuple[torch.Tensor, torch.Tensor]  # inputs [B, ...], targets [B]


def group_size(index: int, total: int, accumulate: int) -> int:
    """How many micro-batches are in the group of micro-batch number ``index``.

    ``total`` micro-batches, numbered from 0, are cut into groups of ``accumulate``;
    only the last group may hold fewer. With total 7 and accumulate 3 the groups are
    0 1 2, 3 4 5 and 6: the size is 3 for the indices 0 to 5, and 1 for index 6.
    """
    # TODO 1 of 2: return the size of the group that micro-batch `index` is in.
    # [start answer 1]
    first = index - index % accumulate
    return min(accumulate, total - first)
    # [end answer 1]


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: list[Batch],
    accumulate: int,
) -> float:
    """Train on all micro-batches; the mean of their losses."""
    model.train()
    losses = []
    for index, (inputs, targets) in enumerate(batches):
        loss = F.cross_entropy(model(inputs), targets)
        losses.append(loss.item())
        size = group_size(index, len(batches), accumulate)
        # TODO 2 of 2: empty .grad at the start of a group, add this micro-batch's
        # share of the gradient, and step at the end of a group.
        # [start answer 2]
        if index % accumulate == 0:
            optimizer.zero_grad()
        (loss / size).backward()
        if index % accumulate == size - 1:
            optimizer.step()
        # [end answer 2]
    return sum(losses) / len(losses)
