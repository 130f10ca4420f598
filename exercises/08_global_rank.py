"""From the local rank to the rank, when a program starts its own ranks on every node.

The program is started once on each node. ``mp.spawn`` calls a function on each node
with the local ranks 0, 1 ..., and nobody but the program itself can tell them apart
from the local ranks of the other nodes. Whoever started it has said in the environment
how many nodes there are and which of them this is::

    NNODES=2  NODE_RANK=1  MASTER_ADDR=...  MASTER_PORT=...

If all nodes start equally many, arithmetic is enough. If they do not, because an old
node has 2 GPUs and a new one has 4, each node has to ask the others first. A *store*
lets them: ``store.set(key, text)`` writes, ``store.get(key)`` waits until somebody has
written and returns bytes.

Ranks are numbered node by node, as torchrun does.

Check your answer with: workshop check 08_global_rank

The page is docs/lessons/08_many_nodes.rst
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.distributed as dist


def place(local_rank: int, nprocs: int, environ: Mapping[str, str]) -> tuple[int, int]:
    """``(rank, world_size)`` if every node starts ``nprocs`` ranks."""
    # TODO 1 of 3: which ranks come before this one? The environment holds texts.
    raise NotImplementedError("TODO 1 of 3")


def place_among_unequal(
    local_rank: int, nprocs: int, environ: Mapping[str, str], store: dist.Store
) -> tuple[int, int]:
    """``(rank, world_size)`` if this node starts ``nprocs``, and others what they can.

    Called by every rank of every node.
    """
    # TODO 2 of 3: write how many this node starts where the ranks of all nodes can
    # read it; read the number of each node; add up.
    raise NotImplementedError("TODO 2 of 3")


def join(
    local_rank: int, nprocs: int, environ: Mapping[str, str], store: dist.Store
) -> int:
    """Join the process group of all nodes, over ``store``; the number of my device."""
    # TODO 3 of 3: use place_among_unequal. Which number has this rank's device on
    # this node?
    raise NotImplementedError("TODO 3 of 3")
