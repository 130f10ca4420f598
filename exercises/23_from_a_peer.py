"""Give a restarted rank the state of a peer.

A rank has died, and a new process has taken its number. Its model has new weights, its
optimizer has no state, and it has taken no step. Another rank was silent for a while,
and it's still three steps back. The quorum before the next step has named them
(``behind``), and a ``source`` that has the newest state. Now all ranks call::

    step = catch_up(model, optimizer, step, source, behind)

Afterwards all of them must continue as if no rank had ever been lost: the same weights
and buffers, the same state of the optimizer, the same next step, on every rank.

``send_state`` and ``receive_state`` are there already. The source may be any rank, and
only ranks that are behind need anything: all others must send and receive nothing.

    workshop check 23_from_a_peer

The page is docs/lessons/23_loose_coupling/4_from_a_peer.rst.
"""

import io

import torch
import torch.distributed as dist
from torch import nn


def send_state(state: dict, to: int) -> None:
    """Send a dictionary with tensors to one rank, which must be receiving."""
    file = io.BytesIO()
    torch.save(state, file)
    packed = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
    dist.send(torch.tensor([len(packed)]), to)
    dist.send(packed, to)


def receive_state(source: int) -> dict:
    """The dictionary that ``source`` sends to this rank."""
    size = torch.zeros(1, dtype=torch.int64)
    dist.recv(size, source)
    packed = torch.empty(int(size), dtype=torch.uint8)
    dist.recv(packed, source)
    return torch.load(io.BytesIO(packed.numpy().tobytes()), weights_only=True)


def whole_state(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict:
    """All that a rank needs to take another one's place; ``step``: the next one."""
    # TODO 1 of 2: what does the next step depend on?
    raise NotImplementedError("TODO 1 of 2")


def catch_up(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    source: int,
    behind: list[int],
) -> int:
    """Bring ranks ``behind`` to the state of rank ``source``; every rank calls this.

    Args:
        step: the number of the next step, as this rank knows it.

    Returns:
        the number of the next step, the same on every rank.
    """
    # TODO 2 of 2: the source sends, those who are behind receive and load.
    raise NotImplementedError("TODO 2 of 2")
