"""Repair three functions that hang, and keep their collectives.

Deleting the collective would end each hang, and make the result wrong. Each function
must still get the other ranks' numbers from collectives of all ranks. In all three, a
rank never arrives at a collective in which the others wait. Which rank is it, and what
keeps it away? Delete the three lines with ``raise NotImplementedError`` and run the
check: it shows where each rank waits.

1. ``report_loss``: rank 0 reports the mean loss of all ranks.
2. ``mean_of_batches``: the ranks have different numbers of batches, and some have none.
3. ``train_until``: all ranks train until the mean loss of all ranks is below a limit.

    workshop check 19_three_hangs

The page is docs/lessons/19_when_it_breaks/2_which_rank.rst.
"""

from collections.abc import Iterator

import torch
import torch.distributed as dist


def report_loss(loss: torch.Tensor) -> float | None:
    """Rank 0 gets the mean of the ranks' losses, the others get None.

    ``loss`` is a number of this rank, in a tensor that the caller still needs.
    """
    # TODO 1 of 3: the lines below hang. Delete the `raise`, and repair them.
    # [start answer 1]
    # ~ if dist.get_rank() != 0:
    # ~     return None
    # ~ mean = loss.clone()
    # ~ dist.all_reduce(mean)
    # ~ return float(mean / dist.get_world_size())
    mean = loss.clone()
    # every rank: [] -> [], the sum on all of them
    dist.all_reduce(mean)
    if dist.get_rank() != 0:
        return None
    return float(mean / dist.get_world_size())
    # [end answer 1]


def mean_of_batches(batches: list[torch.Tensor]) -> torch.Tensor:
    """The mean of all rows of all batches of all ranks, on every rank.

    ``batches`` are this rank's tensors [rows, 3], with different numbers of rows. At
    least one rank has a batch.
    """
    total = torch.zeros(4, dtype=torch.float64)  # the sum of the rows, and their number
    # TODO 2 of 3: the lines below hang. Delete the `raise`, and repair them.
    # [start answer 2]
    # ~ for batch in batches:
    # ~     both = torch.cat([batch.sum(dim=0), torch.tensor([float(len(batch))])])
    # ~     dist.all_reduce(both)
    # ~     total += both
    for batch in batches:
        total[:3] += batch.sum(dim=0)
        total[3] += len(batch)
    # once, on every rank, even on one without batches: [4] -> [4]
    dist.all_reduce(total)
    # [end answer 2]
    return total[:3] / total[3]


def train_until(limit: float, losses: Iterator[torch.Tensor]) -> int:
    """The number of steps after which the mean loss of all ranks is below ``limit``.

    ``next(losses)`` trains one step, in which all ranks communicate, and gives this
    rank's loss. Every rank must do the same number of steps, and not one step more.
    """
    for step, loss in enumerate(losses, 1):
        # TODO 3 of 3: the lines below hang. Delete the `raise`, and repair them.
        # [start answer 3]
        # ~ if float(loss) < limit:
        # ~     return step
        mean = loss.clone()
        # every rank, in every step: [] -> []
        dist.all_reduce(mean)
        if float(mean) / dist.get_world_size() < limit:
            return step
        # [end answer 3]
    raise ValueError("the losses end before the mean is below the limit")
