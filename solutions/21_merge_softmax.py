"""Merge two parts of a softmax that were computed from different keys.

Attention returns the mean of all values, weighted by a softmax over a query's scores.
A rank with some of the keys computes that mean over its own keys, and the log-sum-exp
of their scores, log(sum(exp(score))). Two such parts give the attention to the keys of
both, exactly, and no rank ever holds all scores::

    part = attend(scores, values)     # over some of the keys
    both = merge(part, other)         # over the keys of both

A masked key has the score -inf. If a query sees no key of a part, its log-sum-exp is
the logarithm of 0, which is -inf, and its output is 0. Scores may be large: exp(1000)
is infinite, but neither function needs it. Gradients aren't part of this exercise.

    workshop check 21_merge_softmax

The page is docs/lessons/21_long_sequences/1_merge.rst.
"""

from typing import NamedTuple

import torch


class Part(NamedTuple):
    """Attention to some of the keys."""

    out: torch.Tensor  # [..., q, h]: the weights of these keys add up to 1
    log_sum: torch.Tensor  # [..., q, 1]: log of the sum of exp(score)


def attend(scores: torch.Tensor, values: torch.Tensor) -> Part:
    """Attention to the keys of one part.

    Args:
        scores: [..., q, k], scaled; -inf for a key that a query must not see.
        values: [..., k, h]. Both are left unchanged.
    """
    # TODO 1 of 2: return the Part of these keys. A query that sees none of them has
    # out = 0 and log_sum = -inf.
    # [start answer 1]
    log_sum = scores.logsumexp(dim=-1, keepdim=True)
    # -inf minus -inf would be nan: where no key is seen, subtract 0.
    subtracted = log_sum.masked_fill(log_sum == -torch.inf, 0)
    weights = (scores - subtracted).exp()
    return Part(weights @ values, log_sum)
    # [end answer 1]


def merge(first: Part, second: Part) -> Part:
    """Attention to the keys of both parts, from the two parts alone."""
    # TODO 2 of 2: return the Part of all these keys; leave ``first`` and ``second``
    # unchanged.
    # [start answer 2]
    total = torch.logaddexp(first.log_sum, second.log_sum)
    subtracted = total.masked_fill(total == -torch.inf, 0)
    share = (first.log_sum - subtracted).exp()
    rest = (second.log_sum - subtracted).exp()
    return Part(share * first.out + rest * second.out, total)
    # [end answer 2]
