"""Predict the bubble: how long ranks idle, what they hold, how finely to cut.

Each of the p stages takes one slot for a forward and one for a backward, and messages
take no time. A step of m micro-batches starts with the first forward on rank 0 and ends
with the last backward there. The *bubble* is the number of idle slots divided by the
number of useful slots, of one rank or of all. It is the same for GPipe and for 1F1B.
Draw p = 3 and m = 4 on paper before you type.

    workshop check 13_bubble

The page is docs/lessons/13_pipeline_parallel.rst.
"""

from fractions import Fraction


def bubble(ranks: int, micro_batches: int) -> Fraction:
    """Idle over useful slots of a step, as an exact fraction."""
    # TODO 1 of 3: how many slots does a rank idle, how many does it use?
    raise NotImplementedError("TODO 1 of 3")


def most_held(schedule: str, rank: int, ranks: int, micro_batches: int) -> int:
    """The most micro-batches whose activations ``rank`` holds at a time.

    ``schedule`` is "gpipe" or "1f1b".
    """
    # TODO 2 of 3: a micro-batch is held from its forward to its backward.
    raise NotImplementedError("TODO 2 of 3")


def fewest_micro_batches(ranks: int, batch_size: int, at_most: Fraction) -> int | None:
    """The fewest equal micro-batches whose bubble is ``at_most`` or less.

    They must divide ``batch_size``. None if the bubble is larger even with
    micro-batches of one piece.
    """
    # TODO 3 of 3: try the numbers that divide the batch, smallest first.
    raise NotImplementedError("TODO 3 of 3")
