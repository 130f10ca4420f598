"""Get from the local rank to the rank, in a program that starts its own ranks.

You start the program once on each node. On every node, ``mp.spawn`` calls a function
with the local ranks 0, 1 ..., and only the program can turn them into different ranks.
The environment says how many nodes there are and which one this is::

    NNODES=2  NODE_RANK=1  MASTER_ADDR=...  MASTER_PORT=...

If all nodes start the same number of ranks, arithmetic is enough. If they don't,
because an old node has 2 GPUs and a new one has 4, each node first has to ask the
others. A *store* makes that possible: ``store.set(key, text)`` writes, and
``store.get(key)`` waits until the key has been written and returns bytes.

Number the ranks node by node, as torchrun does.

Check your answer with: workshop check 08_global_rank

The page is docs/lessons/08_many_nodes/1_number.rst
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.distributed as dist


def place(local_rank: int, nprocs: int, environ: Mapping[str, str]) -> tuple[int, int]:
    """``(rank, world_size)`` if every node starts ``nprocs`` ranks."""
    # TODO 1 of 3: how many ranks are on earlier nodes? The environment holds strings.
    raise NotImplementedError("TODO 1 of 3")


def place_among_unequal(
    local_rank: int, nprocs: int, environ: Mapping[str, str], store: dist.Store
) -> tuple[int, int]:
    """``(rank, world_size)`` if this node starts ``nprocs`` ranks, and others differ.

    Called by every rank of every node, maybe more than once.
    """
    # TODO 2 of 3: write how many ranks this node starts where all nodes can read it.
    # Read the number of each node, and add up.
    raise NotImplementedError("TODO 2 of 3")


def join(
    local_rank: int, nprocs: int, environ: Mapping[str, str], store: dist.Store
) -> int:
    """Join the group of all nodes over ``store``; return the number of the device."""
    # TODO 3 of 3: use place_among_unequal, and pass init_process_group the store as
    # `store`, with rank and world_size; the backend is "gloo". Which number does this
    # rank's device have on this node?
    raise NotImplementedError("TODO 3 of 3")
