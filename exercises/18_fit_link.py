"""Fit a link: the delay of a message, and the seconds for each byte.

An all-reduce was timed with several sizes, each a few times. A message of n bytes
takes about alpha + beta n seconds. Find alpha, in seconds, and beta, in seconds per
byte. With both, you can predict the time of a message that was never measured.

Two things spoil such a table. The first repeat of each size also pays for connections
and memory, and now and then another program makes a repeat slow. And the times differ a
thousandfold from the smallest message to the largest. Minimize errors in seconds, and
only the largest count: alpha is lost in their noise. So make the errors *relative*:
choose alpha and beta such that the sum over all sizes of

    ((alpha + beta n - t) / t)^2

is smallest, where t is the typical time of a message of n bytes.

    workshop check 18_fit_link

The page is docs/lessons/18_scaling/2_link.rst.
"""

import statistics

import torch


def typical(repeats: list[float]) -> float:
    """The median of the repeats, without the first one, which warms up.

    The median of an even number is the mean of the two in the middle.
    """
    # TODO 1 of 2: which repeats count?
    raise NotImplementedError("TODO 1 of 2")


def fit(sizes: list[int], seconds: list[list[float]]) -> tuple[float, float]:
    """(alpha, beta) with the least sum of squared relative errors.

    ``seconds[k]`` are the repeats for a message of ``sizes[k]`` bytes. Compute in
    float64: these numbers are small.
    """
    # TODO 2 of 2: divide alpha + beta n = t by t, and its error becomes relative.
    raise NotImplementedError("TODO 2 of 2")
