"""Broadcast in log2(N) rounds: every rank that has the tensor sends it to another.

If rank 0 sends to all other ranks one after the other, the last one waits for N - 1
messages. But after the first message two ranks can send, then four, then eight. With
1,024 ranks that takes 10 rounds instead of 1,023, for the same N - 1 messages in all.

In the round with distance d (1, 2, 4 ...) rank r sends to r + d, if r is less than d
and so has the tensor already, and if there is a rank r + d. This is for root 0. For
another root, count from the root: ``place`` is 0 on the root, 1 on the next rank.

Check your answer with: workshop check 03_broadcast_tree

The page is docs/lessons/03_collectives/2_ring.rst
"""

import torch
import torch.distributed as dist


def tree_broadcast(tensor: torch.Tensor, root: int) -> None:
    """Give the tensor of rank ``root`` to every rank, in place.

    The world size may be any number, not only a power of two. Use ``dist.send`` and
    ``dist.recv`` (or isend and irecv, and wait for each). Each rank except the root
    receives once.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % world_size
    distance = 1
    while distance < world_size:
        # TODO 1 of 1: in the round with this distance, send, or receive, or do nothing.
        # Your partner is a rank, again modulo the world size.
        raise NotImplementedError("TODO 1 of 1")
        distance *= 2
