"""Broadcast in log2(W) rounds: everybody who has the tensor passes it on.

If rank 0 sends to all others one after the other, the last one waits for W - 1
messages. But after the first message two ranks have the tensor, after the second
round four, then eight. With 1,024 ranks that is 10 rounds instead of 1,023, although
the same W - 1 messages are sent in all.

In the round with distance d (1, 2, 4 ...) rank r sends to r + d, if r is below d and
so has the tensor already, and if there is a rank r + d. That is told for root 0. For
another root, count from the root: ``place`` is 0 on the root, 1 on the next rank.

Check your answer with: workshop check 03_broadcast_tree

The page is docs/lessons/03_collectives.rst
"""

import torch
import torch.distributed as dist


def tree_broadcast(tensor: torch.Tensor, root: int) -> None:
    """Give the tensor of rank ``root`` to every rank, in place.

    The world size may be any number, not only a power of two. Use ``dist.send`` and
    ``dist.recv`` (or isend and irecv); each rank but the root receives once.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % world_size
    distance = 1
    while distance < world_size:
        # TODO 1 of 1: take part in the round of this distance, as sender, as receiver,
        # or not at all. Partners are ranks, again modulo the world size.
        raise NotImplementedError("TODO 1 of 1")
        distance *= 2
