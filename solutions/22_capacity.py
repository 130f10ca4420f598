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
    # [start answer 1]
    tokens = torch.tensor(len(chosen))
    dist.all_reduce(tokens)  # every rank; [] -> []
    return math.ceil(factor * chosen.shape[1] * int(tokens) / experts)
    # [end answer 1]


def within_capacity(chosen: torch.Tensor, experts: int, capacity: int) -> torch.Tensor:
    """Which of this rank's choices are kept: [n, k] experts -> [n, k] truth values.

    Every rank calls this. No expert has more than ``capacity`` kept choices in all.
    """
    # [n, k, E]: 1 where a token's choice is this expert
    asked = F.one_hot(chosen, experts)
    # TODO 2 of 2: for each own choice, count the choices of the same expert that go
    # before it, on any rank. It's kept if these are fewer than ``capacity``.
    # [start answer 2]
    own = asked.sum(0)  # [k, E]
    counts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, own)  # every rank; [k, E] -> N x [k, E]
    of_ranks = torch.stack(counts)
    total = of_ranks.sum(0)
    higher_choices = total.cumsum(0) - total
    lower_ranks = of_ranks[: dist.get_rank()].sum(0)
    own_before = asked.cumsum(0) - asked
    before = own_before + lower_ranks + higher_choices
    return before.gather(2, chosen[..., None]).squeeze(2) < capacity
    # [end answer 2]
