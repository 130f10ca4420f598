"""At how many ranks does communication take longer than what can hide it?

DDP sends gradients while backward still computes. As long as the all-reduce is shorter
than backward, it costs nothing. You keep the global batch and add ranks: each rank then
has fewer sequences, so backward gets shorter, while the all-reduce gets longer. At some
number of ranks communication *binds*, and beyond that, more ranks pay off less.

All bytes of the gradients go through one ring, as in lesson 03. A message of n bytes
takes alpha + beta n seconds. In each step of the ring, every rank sends one message, an
N-th of the bytes, all at the same time.

    workshop check 18_communication_binds

The page is docs/lessons/18_scaling/2_link.rst.
"""


def all_reduce_seconds(ranks: int, size: int, alpha: float, beta: float) -> float:
    """Seconds of a ring all-reduce of ``size`` bytes; 0 on one rank."""
    # TODO 1 of 3: how many steps does the ring take, and how long is each?
    raise NotImplementedError("TODO 1 of 3")


def backward_seconds(ranks: int, batch: int, per_sequence: float) -> float:
    """Seconds of backward on one of the ranks, which share ``batch`` sequences.

    Forward and backward of one sequence take ``per_sequence`` seconds together.
    Backward is two thirds of that.
    """
    # TODO 2 of 3: the sequences of a rank, and the share of backward.
    raise NotImplementedError("TODO 2 of 3")


def binds_from(
    batch: int, size: int, per_sequence: float, alpha: float, beta: float
) -> int | None:
    """The fewest ranks whose all-reduce takes longer than their backward.

    The number must divide ``batch``. None if there is no such number, even with one
    sequence on each rank.
    """
    # TODO 3 of 3: try the numbers that divide the batch, smallest first.
    raise NotImplementedError("TODO 3 of 3")
