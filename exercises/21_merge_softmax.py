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
    raise NotImplementedError("TODO 1 of 2")


def merge(first: Part, second: Part) -> Part:
    """Attention to the keys of both parts, from the two parts alone."""
    # TODO 2 of 2: return the Part of all these keys; leave ``first`` and ``second``
    # unchanged.
    raise NotImplementedError("TODO 2 of 2")
