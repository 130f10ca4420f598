"""Sum a tensor over all ranks by passing chunks round a ring.

The tensor is cut into one chunk per rank. Every rank only ever sends to its right
neighbour (rank + 1) and receives from its left one (rank - 1), with ``exchange``.

*Phase 1, reduce-scatter*, W - 1 steps. In step 0 rank r sends its own chunk r. In each
further step it sends on what it received and added to in the step before. In the end
rank r holds the finished sum of chunk r + 1, and of no other.

*Phase 2, all-gather*, W - 1 steps. The finished chunks travel round: rank r begins
with chunk r + 1, and then passes on what it has received last.

Chunk numbers are meant modulo W. Each rank sends 2(W-1)/W times the tensor in all,
however many ranks there are.

Check your answer with: workshop check 03_ring_all_reduce

The page is docs/lessons/03_collectives.rst
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist


def exchange(outgoing: torch.Tensor, incoming: torch.Tensor) -> None:
    """Send to the right neighbour and receive from the left one, both at once."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    sending = dist.isend(outgoing, (rank + 1) % world_size)
    dist.recv(incoming, (rank - 1) % world_size)
    sending.wait()


def reduce_scatter_phase(chunks: Sequence[torch.Tensor]) -> None:
    """Phase 1: afterwards chunk r + 1 of rank r is the sum over all ranks.

    ``chunks[i]`` is this rank's chunk number i, a part of its tensor: add in place.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for step in range(world_size - 1):
        # TODO 1 of 2: send the chunk of this step, receive the one before it into
        # new memory, and add that to your own chunk of that number. Chunks may
        # differ in length by one element.
        # [start answer 1]
        outgoing = chunks[(rank - step) % world_size]
        mine = chunks[(rank - step - 1) % world_size]
        incoming = torch.empty_like(mine)
        exchange(outgoing, incoming)
        mine += incoming
        # [end answer 1]


def all_gather_phase(chunks: Sequence[torch.Tensor]) -> None:
    """Phase 2: begins with chunk r + 1 finished on rank r, ends with all of them."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for step in range(world_size - 1):
        # TODO 2 of 2: send the chunk that you finished or received last, and let
        # the one from the left replace yours.
        # [start answer 2]
        outgoing = chunks[(rank + 1 - step) % world_size]
        incoming = chunks[(rank - step) % world_size]
        exchange(outgoing, incoming)
        # [end answer 2]


def ring_all_reduce(tensor: torch.Tensor) -> torch.Tensor:
    """Sum a contiguous tensor over all ranks, in place; returns it.

    The number of elements need not be a multiple of the world size, and may be
    smaller: some chunks are then empty.
    """
    chunks = tensor.view(-1).tensor_split(dist.get_world_size())
    reduce_scatter_phase(chunks)
    all_gather_phase(chunks)
    return tensor
