"""Average the gradients of experts and of everything else, each over the right ranks.

N ranks form a grid: e *expert ranks* with consecutive numbers hold all experts
together, and each of the N / e groups of them holds a copy. With N = 4 and e = 2, ranks
0 and 2 have the same experts, and so have ranks 1 and 3.

Every rank has called ``backward()`` on the mean loss of its own tokens. Afterwards each
gradient must be that of the mean of all N losses:

* A parameter that all ranks have, such as the router's, has the gradient of this rank's
  loss.
* An expert's gradient is already a sum over the losses of the e ranks of its group,
  because their tokens were sent to it.

An expert that no token chose may have no gradient, ``None``, on one rank and a gradient
on another. None counts as zeros.

    workshop check 22_average_experts

The page is docs/lessons/22_experts/4_average.rst.
"""

import torch
import torch.distributed as dist
from torch import nn


def ranks_with_copies(rank: int, world_size: int, expert_ranks: int) -> list[int]:
    """The ranks that have the same experts as ``rank``, itself among them, in order."""
    # TODO 1 of 2
    # [start answer 1]
    return list(range(rank % expert_ranks, world_size, expert_ranks))
    # [end answer 1]


def average_gradients(
    others: list[nn.Parameter],
    experts: list[nn.Parameter],
    copies: dist.ProcessGroup,
) -> None:
    """Make each ``grad`` that of the mean of all ranks' losses.

    Args:
        others: parameters that are the same on all ranks.
        experts: those of this rank's experts.
        copies: the group of the ranks that have the same experts.

    Every rank calls this. Afterwards no gradient is None.
    """
    # TODO 2 of 2: which group adds up which gradients, and by what are they divided?
    # [start answer 2]
    for parameters, group in ((others, None), (experts, copies)):
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            # Every rank of the group. [shape] -> [shape]
            dist.all_reduce(parameter.grad, group=group)
            parameter.grad /= dist.get_world_size()
    # [end answer 2]
