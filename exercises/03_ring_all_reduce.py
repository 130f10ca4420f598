"""Sum a tensor over all ranks by sending chunks around a ring.

The tensor is cut into one chunk per rank. Every rank sends only to its right neighbor
(rank + 1) and receives only from its left one (rank - 1), with ``exchange``. There are
N ranks, and all chunk numbers are modulo N.

*Phase 1, reduce-scatter*, N - 1 steps. In step 0 rank r sends its own chunk r. In each
later step it sends the sum that it made in the step before. At the end rank r holds
the complete sum of chunk r + 1, and of no other.

*Phase 2, all-gather*, N - 1 steps. Rank r begins with its complete chunk r + 1, and
then sends what it received last. In both phases together it sends 2 (N - 1) / N times
the tensor.

Check your answer with: workshop check 03_ring_all_reduce

The page is docs/lessons/03_collectives/2_ring.rst
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist


def exchange(outgoing: torch.Tensor, incoming: torch.Tensor) -> None:
    """Send to the right neighbor and receive from the left one, both at once."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    sending = dist.isend(outgoing, (rank + 1) % world_size)
    dist.recv(incoming, (rank - 1) % world_size)
    sending.wait()


def reduce_scatter_phase(chunks: Sequence[torch.Tensor]) -> None:
    """Phase 1: afterwards chunk r + 1 of rank r is the sum over all ranks.

    ``chunks[i]`` is this rank's chunk number i, a part of its tensor. Add in place.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for step in range(world_size - 1):
        # TODO 1 of 2: send the chunk of this step. Receive the chunk whose number is
        # one less into new memory, and add it to your own chunk of that number.
        # Chunks may differ in length by one element.
        raise NotImplementedError("TODO 1 of 2")


def all_gather_phase(chunks: Sequence[torch.Tensor]) -> None:
    """Phase 2: from chunk r + 1 complete on rank r to all chunks on all ranks."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for step in range(world_size - 1):
        # TODO 2 of 2: send the chunk that you completed or received last, and let
        # the one from the left replace yours.
        raise NotImplementedError("TODO 2 of 2")


def ring_all_reduce(tensor: torch.Tensor) -> torch.Tensor:
    """Sum a contiguous tensor over all ranks, in place, and return it.

    The number of elements needn't be a multiple of the world size. It may even be
    smaller, and then some chunks are empty.
    """
    chunks = tensor.view(-1).tensor_split(dist.get_world_size())
    reduce_scatter_phase(chunks)
    all_gather_phase(chunks)
    return tensor
