"""Send to both neighbors of a pipeline at the same time, without a hang.

With 1F1B, a rank has an activation for the next rank while the next rank has a gradient
for it. With gloo, ``dist.send`` returns only when the other side has received, so two
ranks that both send first wait forever. Write the exchange twice::

    arrived = exchange(activation, gradient, shapes)             # one batch
    arrived = exchange_in_turns(activation, gradient, shapes)    # send and recv only

Both take the same arguments and return the same result. Rank r sends ``activation`` to
rank r + 1 and ``gradient`` to rank r - 1. There is no rank before rank 0, and none
after the last one: what can't be sent or received there is None. There are at least two
ranks. When the function returns, everything has arrived, and the caller may overwrite
what it sent.

    workshop check 13_send_both_ways

The page is docs/lessons/13_pipeline_parallel/3_sending.rst.
"""

import torch
import torch.distributed as dist
from torch import Tensor

Shape = tuple[int, ...]


def room_for(shapes: tuple[Shape | None, Shape | None]) -> list[Tensor | None]:
    """Tensors to receive into, or None: from the previous and from the next rank."""
    room: list[Tensor | None] = [None, None]
    for side, shape in enumerate(shapes):
        if shape is not None:
            room[side] = torch.empty(shape, dtype=torch.float64)
    return room


def exchange(
    activation: Tensor | None,
    gradient: Tensor | None,
    shapes: tuple[Shape | None, Shape | None],
) -> tuple[Tensor | None, Tensor | None]:
    """What the previous and the next rank sent: (an activation, a gradient).

    All messages of a rank are in one ``dist.batch_isend_irecv``. With NCCL, they would
    otherwise be queued one after the other, and a send would block the receive after
    it.

    Args:
        activation: for the next rank; None on the last rank.
        gradient: for the previous rank; None on rank 0.
        shapes: of what the previous and the next rank send; None where there's no rank.
    """
    rank = dist.get_rank()
    from_previous, from_next = room_for(shapes)
    # TODO 1 of 2: make a list of dist.P2POp(operation, tensor, peer), start it as one
    # batch, and wait for it.
    raise NotImplementedError("TODO 1 of 2")
    return from_previous, from_next


def exchange_in_turns(
    activation: Tensor | None,
    gradient: Tensor | None,
    shapes: tuple[Shape | None, Shape | None],
) -> tuple[Tensor | None, Tensor | None]:
    """With only ``dist.send`` and ``dist.recv``, in an order that can't hang."""
    rank = dist.get_rank()
    from_previous, from_next = room_for(shapes)
    # TODO 2 of 2: of two neighbors that exchange something, one must receive while the
    # other sends. Which of them are you, for each of your two neighbors?
    raise NotImplementedError("TODO 2 of 2")
    return from_previous, from_next
