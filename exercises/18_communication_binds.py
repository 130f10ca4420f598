"""From how many sequences per rank does backward hide communication?

DDP sends gradients while backward still computes. As long as the all-reduce is shorter
than backward, it costs nothing. If you keep the global batch and add ranks, each has
fewer sequences: backward gets shorter, the all-reduce doesn't. At some point
communication *binds*, and beyond that, more ranks pay off less.

Find that point by measuring, as a number of sequences per rank. Keep all ranks, and
vary the number of sequences that each of them gets. A step lasts as long as on the
slowest rank, so each time must be that of the slowest rank, and equal on all ranks.

If n sequences are the fewest that hide it, a global batch of B sequences hides it on at
most B // n ranks. That assumes an all-reduce that takes as long on more ranks. A ring's
is slower: for large buckets by up to 14 % compared with 8 ranks.

The check runs your code in ranks, on a network and at speeds that it simulates. The
functions of ``time`` show simulated time, so a busy machine changes nothing.

    workshop check 18_communication_binds

The page is docs/lessons/18_scaling/2_link.rst.
"""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist


def slowest_seconds(work: Callable[[], object], repeats: int) -> float:
    """The seconds of ``work()`` on the slowest rank, the least of ``repeats``.

    All ranks call this, and each gets the same number. The first call of ``work``
    doesn't count. Before every later call, a barrier makes the ranks start together.
    """
    times = []  # of this rank
    # TODO 1 of 3: of each repeat the slowest rank's time, and of these the least.
    raise NotImplementedError("TODO 1 of 3")


def step(backward: Callable[[int], None], sequences: int, bucket: torch.Tensor) -> None:
    """Run backward on that many sequences while ``bucket`` is summed over all ranks.

    ``backward(sequences)`` computes, and sends nothing. When ``step`` returns, both
    have ended. ``bucket`` stands for the gradients that DDP sends meanwhile.
    """
    # TODO 2 of 3: begin the all-reduce before backward, and wait for it afterwards.
    raise NotImplementedError("TODO 2 of 3")


def hidden_from(
    backward: Callable[[int], None],
    choices: list[int],
    bucket: torch.Tensor,
    repeats: int,
) -> int | None:
    """The fewest sequences per rank, of ``choices``, that hide the all-reduce.

    It's hidden if a step takes at most 1 % longer than backward alone. ``choices`` are
    in ascending order. None if no number of sequences hides it.
    """
    for sequences in choices:
        # TODO 3 of 3: measure both, and return the first number that hides it.
        raise NotImplementedError("TODO 3 of 3")
    return None
