"""Send each row to the rank of its expert.

E experts are spread over the N ranks of a group: rank 0 has the first E / N of them,
rank 1 the next, and so on. Every rank has rows, sorted by expert, and knows how many of
them are for each expert. After dispatch, it has the rows for its own experts, from all
ranks, sorted by expert again::

    arriving = exchange_counts(counts, group)
    rows = dispatch(rows, counts, arriving, group)
    outputs = experts(rows, arriving.sum(0))

Parts are uneven, and some are empty. A rank may have no row at all, and an expert may
get none. Every rank calls both functions all the same. Gradients aren't part of this
exercise.

    workshop check 22_dispatch

The page is docs/lessons/22_experts/3_exchange.rst.
"""

import torch
import torch.distributed as dist


def exchange_counts(
    counts: torch.Tensor, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    """How many rows will arrive, from each rank for each own expert.

    Args:
        counts: [E] whole numbers: this rank's rows for each expert of all ranks. They
            are left unchanged, since ``dispatch`` needs them.
        group: the ranks that share the experts; None: all ranks.

    Returns:
        [N, E/N]: row r is what rank r of the group has for each of this rank's experts.
    """
    # TODO 1 of 2: one call of ``dist.all_to_all_single``
    raise NotImplementedError("TODO 1 of 2")


def dispatch(
    rows: torch.Tensor,
    counts: torch.Tensor,
    arriving: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """The rows for own experts, of all ranks: [m, H] -> [arriving.sum(), H].

    Args:
        rows: this rank's rows, sorted by expert.
        counts: [E] how many of them each expert gets.
        arriving: what ``exchange_counts`` returned. All three are left unchanged.

    Returns:
        the rows sorted by expert. Rows for the same expert are sorted by the rank that
        sent them, and rows from one rank keep their order.
    """
    # TODO 2 of 2: the lists of sizes for ``dist.all_to_all_single``, the call, and the
    # new order: the rows arrive sorted by rank first.
    raise NotImplementedError("TODO 2 of 2")
