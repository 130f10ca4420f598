"""Collect the rows of all ranks when each rank has a different number of them.

``dist.all_gather`` needs tensors of the same shape on all ranks, which the last batch,
for example, doesn't have. So gather the lengths first, pad to the longest one and
gather, and cut the padding off. Send tensors, not pickled objects:
``dist.all_gather_object`` would do it in one line, but it turns every number into bytes
and back, on the CPU. And send little more than the rows: no rank pads beyond the
longest one.

Check your answer with: workshop check 03_uneven_all_gather

The page is docs/lessons/03_collectives/1_what_they_do.rst
"""

import torch
import torch.distributed as dist


def gather_lengths(length: int) -> list[int]:
    """The ``length`` that each rank was called with, in the order of the ranks."""
    # TODO 1 of 2: one all_gather of one whole number per rank.
    # [start answer 1]
    lengths = [torch.empty(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    # Every rank; [1] -> N x [1], 8 bytes from each rank to each.
    dist.all_gather(lengths, torch.tensor([length]))
    return [int(other) for other in lengths]
    # [end answer 1]


def all_gather_uneven(rows: torch.Tensor) -> list[torch.Tensor]:
    """The rows of every rank, in the order of the ranks.

    Args:
        rows: [n, width] of any dtype, where n differs from rank to rank and may be 0.
            They must be unchanged afterwards.

    Returns:
        One tensor per rank. That of rank r has exactly its n rows.
    """
    lengths = gather_lengths(len(rows))
    # TODO 2 of 2: pad to the longest length, gather, and cut the padding off again.
    # [start answer 2]
    padded = rows.new_zeros(max(lengths), *rows.shape[1:])
    padded[: len(rows)] = rows
    slots = [torch.empty_like(padded) for _ in lengths]
    # Every rank; [longest, width] -> N x [longest, width].
    dist.all_gather(slots, padded)
    return [slot[:length] for slot, length in zip(slots, lengths, strict=True)]
    # [end answer 2]
