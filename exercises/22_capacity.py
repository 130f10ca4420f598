"""Give experts one capacity for the tokens of all ranks.

Every rank has a part of the batch, and its router has chosen k experts for each of its
tokens. An expert takes at most ``capacity`` tokens of the whole batch. The rest is
dropped. To drop the same choices as one process would, all must agree on the order:

1. the first choices of all tokens: those of rank 0 in order, then those of rank 1 ...;
2. then the second choices of all tokens, in the same order; and so on.

A rank needs only counts from the others, not their tokens: how many times each rank has
chosen each expert, first, second ... Ranks may have different numbers of tokens, and
one may have none.

    workshop check 22_capacity

The page is docs/lessons/22_experts/1_route.rst.
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F


def capacity_of_batch(chosen: torch.Tensor, experts: int, factor: float) -> int:
    """The most tokens of all ranks that an expert takes: factor x k x tokens / E.

    Args:
        chosen: [n, k] this rank's choices; n differs between ranks, k doesn't.

    Returns:
        a whole number, rounded up; the same on all ranks.
    """
    # TODO 1 of 2: every rank has to count the tokens of all ranks.
    raise NotImplementedError("TODO 1 of 2")


def within_capacity(chosen: torch.Tensor, experts: int, capacity: int) -> torch.Tensor:
    """Which of this rank's choices are kept: [n, k] experts -> [n, k] truth values.

    Every rank calls this. No expert has more than ``capacity`` kept choices in all.
    """
    # [n, k, E]: 1 where a token's choice is this expert
    asked = F.one_hot(chosen, experts)
    # TODO 2 of 2: for each own choice, count the choices of the same expert that go
    # before it, on any rank. It's kept if these are fewer than ``capacity``.
    raise NotImplementedError("TODO 2 of 2")
