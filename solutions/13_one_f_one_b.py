"""Write the order of 1F1B: which forward or backward does a rank run when?

A rank that runs all its forwards first must keep the activations of all micro-batches.
1F1B starts its backwards as early as it can. Rank r runs only as many forwards ahead as
it needs until the first gradient can reach it. Then it alternates one forward and one
backward, and at the end it runs the backwards that are left::

    order(0, 3, 4)     # rank 0 of 3, 4 micro-batches
    [("forward", 0), ("forward", 1), ("forward", 2), ("backward", 0),
     ("forward", 3), ("backward", 1), ("backward", 2), ("backward", 3)]

No rank may ever hold more micro-batches than there are ranks from it to the last one,
itself included, and a whole step must be as short as that of GPipe.

    workshop check 13_one_f_one_b

The page is docs/lessons/13_pipeline_parallel/2_order.rst.
"""


def order(rank: int, ranks: int, micro_batches: int) -> list[tuple[str, int]]:
    """What ``rank`` does in one step, first to last: ("forward" or "backward", k)."""
    # TODO 1 of 2: how many forwards does this rank run ahead, before it first
    # alternates forward and backward? There may be very few micro-batches.
    # [start answer 1]
    ahead = min(ranks - 1 - rank, micro_batches)
    # [end answer 1]
    # TODO 2 of 2: return the forwards ahead, the alternating part, and the backwards
    # that are left.
    # [start answer 2]
    actions = [("forward", k) for k in range(ahead)]
    for k in range(ahead, micro_batches):
        actions += [("forward", k), ("backward", k - ahead)]
    actions += [("backward", k) for k in range(micro_batches - ahead, micro_batches)]
    return actions
    # [end answer 2]
