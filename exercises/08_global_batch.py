"""Keep one global batch on any number of ranks: shares, loss, learning rate.

You tuned training with a global batch of 32 and a learning rate. Now you have 3 ranks,
or 5, or 48. Answer three questions, so that training stays the same or you know how it
changes:

* How many samples does each rank take if the global batch doesn't divide?
* DDP gives every rank the same weight when it averages the gradients. If a rank has
  fewer samples than another, what loss must it use so that the average is the gradient
  of the mean over the *global* batch?
* If you make the global batch larger, what happens to the learning rate?

Check your answer with: workshop check 08_global_batch

The page is docs/lessons/08_many_nodes/2_batch.rst
"""

from __future__ import annotations

import torch


def shares(global_batch: int, world_size: int) -> list[int]:
    """The number of samples of each rank. They differ by at most 1, larger ones first.

    Raises:
        ValueError: there are fewer samples than ranks; the message names both numbers.
    """
    # TODO 1 of 3: how many every rank gets, and which ranks get one more.
    raise NotImplementedError("TODO 1 of 3")


def loss_of_rank(
    losses: torch.Tensor, global_batch: int, world_size: int
) -> torch.Tensor:
    """The loss that this rank calls ``backward()`` on; ``losses``: [share].

    ``losses`` has one value per sample. Don't change it: it is logged later. DDP will
    divide the sum of the ranks' gradients by ``world_size``.
    """
    # TODO 2 of 3: in the end, each sample must count 1 / global_batch.
    raise NotImplementedError("TODO 2 of 3")


def learning_rate(
    rate: float, tuned_batch: int, global_batch: int, step: int, warmup: int
) -> float:
    """The learning rate of a step, by the linear scaling rule with warm-up.

    ``rate`` was tuned for ``tuned_batch``, and ``step`` counts from 0. Step 0 uses
    ``rate`` unchanged. From step ``warmup`` on, the rate is scaled like the batch. In
    between it changes by the same amount in every step: up for a larger batch, down for
    a smaller one. With ``warmup`` 0 there is no warm-up, and every step is scaled.
    """
    # TODO 3 of 3: which rate does the warm-up end at, and how far along is this step?
    raise NotImplementedError("TODO 3 of 3")
