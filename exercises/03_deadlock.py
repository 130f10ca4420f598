"""Repair a program in which every rank waits forever.

A field of cells is cut into strips, one per rank, and the last strip borders on the
first. To compute its next state, a rank needs the edges of its neighbors: the *last*
row of the strip on its left and the *first* row of the strip on its right.

The program sends both edges and then receives both. It looks right, but it hangs on
its first line: ``dist.send`` returns when the receiver has taken the data, and all
ranks are still sending. Run the check to see where each rank waits, then repair it.
It must work with 2 ranks or more, including odd numbers, and send each edge only to
the neighbor that needs it. Don't use a collective: that would involve every rank.

Check your answer with: workshop check 03_deadlock

The page is docs/lessons/03_collectives/3_deadlocks.rst
"""

import torch
import torch.distributed as dist


def exchange_edges(strip: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The row to the left of this rank's strip, and the row to the right of it.

    Args:
        strip: [rows, width], contiguous. The caller will overwrite it as soon as this
            function returns.

    Returns:
        ([width], [width]): the last row of the left neighbor, the first row of the
        right neighbor.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    from_left, from_right = torch.empty_like(strip[0]), torch.empty_like(strip[0])
    # TODO 1 of 1: the lines below are what hangs. Delete the `raise`, see what the
    # check says, and repair them.
    raise NotImplementedError("TODO 1 of 1")
    dist.send(strip[-1], right)
    dist.send(strip[0], left)
    dist.recv(from_left, left)
    dist.recv(from_right, right)
    return from_left, from_right
