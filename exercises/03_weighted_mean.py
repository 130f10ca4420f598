"""Average over all samples when the ranks hold unequal numbers of them.

Each rank has computed a loss for each of its own samples. One rank has the last,
smaller batch, and another may have no samples at all. Return on every rank the mean
over *all samples*, as if one process had held them: if one sample is NaN, so is the
mean. That isn't the mean of the ranks' means, which gives a sample more weight on a
rank that has few. Don't send the samples themselves: two numbers per rank are enough.

Check your answer with: workshop check 03_weighted_mean

The page is docs/lessons/03_collectives/1_what_they_do.rst
"""

import torch
import torch.distributed as dist


def mean_over_ranks(values: torch.Tensor) -> torch.Tensor:
    """The mean of the values of all ranks together, the same on every rank.

    Args:
        values: [n] float64, this rank's values. n differs from rank to rank and may
            be 0, but not on all ranks. They must be unchanged afterwards.

    Returns:
        [] float64.
    """
    # TODO 1 of 1: get the sum of all values and their number over all ranks, and
    # divide. Every rank must call each collective, even a rank without values.
    raise NotImplementedError("TODO 1 of 1")
