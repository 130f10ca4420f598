"""Write the order of 1F1B: when a rank goes forward, when it goes back.

A rank that first takes all micro-batches forward must keep the activations of all of
them. 1F1B turns back as early as it can: rank r runs ahead by just so many forwards
as it takes until the first gradient can come back to it, then does one forward and
one backward in turn, and at the end the backwards that are left::

    order(0, 3, 4)     # rank 0 of 3, 4 micro-batches
    [("forward", 0), ("forward", 1), ("forward", 2), ("backward", 0),
     ("forward", 3), ("backward", 1), ("backward", 2), ("backward", 3)]

No rank may ever hold more micro-batches than there are ranks from it to the last one,
itself included, and a whole step must be as short as that of GPipe.

    workshop check 13_one_f_one_b

The page is docs/lessons/13_pipeline_parallel.rst.
"""


def order(rank: int, ranks: int, micro_batches: int) -> list[tuple[str, int]]:
    """What ``rank`` does in one step, first to last: ("forward" or "backward", k)."""
    # TODO 1 of 2: by how many forwards does this rank run ahead before the first turn
    # of one forward and one backward? There may be very few micro-batches.
    raise NotImplementedError("TODO 1 of 2")
    # TODO 2 of 2: return the forwards ahead, the turns, and the backwards left over.
    raise NotImplementedError("TODO 2 of 2")
