"""One global batch on any number of ranks: shares, loss, learning rate.

A training was tuned with a global batch of 32 and its learning rate. You have 3 ranks,
or 5, or 48. Three questions have to be answered so that the training stays the same, or
so that you know how it changes:

* how many samples does each rank take, if the global batch does not divide?
* DDP gives every rank the same weight when it averages the gradients. What must a rank
  with fewer samples than another take as its loss, so that the average is the
  gradient of the mean over the *global* batch?
* and if the global batch is made larger, what becomes of the learning rate?

Check your answer with: workshop check 08_global_batch

The page is docs/lessons/08_many_nodes.rst
"""

from __future__ import annotations

import torch


def shares(global_batch: int, world_size: int) -> list[int]:
    """The number of samples of each rank: they differ by 1 at most, larger ones first.

    Raises:
        ValueError: there are fewer samples than ranks; the message names both numbers.
    """
    # TODO 1 of 3: what every rank gets, and who gets one of the rest.
    raise NotImplementedError("TODO 1 of 3")


def loss_of_rank(
    losses: torch.Tensor, global_batch: int, world_size: int
) -> torch.Tensor:
    """What this rank calls ``backward()`` on; ``losses``: [share], one of each sample.

    DDP will divide the sum of the ranks' gradients by ``world_size``.
    """
    # TODO 2 of 3: each sample must count 1 / global_batch in the end.
    raise NotImplementedError("TODO 2 of 3")


def learning_rate(
    rate: float, tuned_batch: int, global_batch: int, step: int, warmup: int
) -> float:
    """The rate of a step, counted from 0, by the linear scaling rule with warm-up.

    ``rate`` was tuned for ``tuned_batch``. Step 0 still uses it; from step ``warmup``
    on, the rate is scaled as the batch is; in between it grows by equal steps.
    """
    # TODO 3 of 3: where it ends, and how far step is on the way. warmup may be 0.
    raise NotImplementedError("TODO 3 of 3")
