"""Shard within each node, save together, and resume on other nodes.

Gathering shards over the connection between nodes is slow, so every node keeps a
complete set of shards. Only gradients are averaged between nodes. Ranks are numbered
consecutively within a node: with 2 nodes of 3 ranks, ranks 0, 1 and 2 are node 0. Each
rank trains on a batch of its own.

The job also saves a distributed checkpoint, and a job with other nodes, say 3 of 2
ranks, continues from it as if nothing had happened. The training state is the model,
the optimizer, and the scheduler of its learning rate.

    workshop check 16_mesh_api

The page is docs/lessons/16_two_dimensions/4_checkpoint.rst.
"""

from pathlib import Path

import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


def shard(model: nn.Module, nodes: int, per_node: int) -> None:
    """Shard in place: each of ``model.blocks`` is a group, and the rest is one.

    Give each axis of the grid a name: ``fully_shard`` asks for them.
    """
    # TODO 1 of 3: make the grid of all ranks, and shard over it.
    raise NotImplementedError("TODO 1 of 3")


def save(
    folder: Path, model: nn.Module, optimizer: Optimizer, scheduler: LRScheduler
) -> None:
    """Write the training state into ``folder``; every rank writes a part of it.

    When this returns, on any rank, the checkpoint is complete.
    """
    # TODO 2 of 3: collect what the ranks hold by names, and save it.
    raise NotImplementedError("TODO 2 of 3")


def load(
    folder: Path, model: nn.Module, optimizer: Optimizer, scheduler: LRScheduler
) -> None:
    """Restore the state that ``save`` wrote; these objects are new, on other nodes."""
    # TODO 3 of 3: load the parts this rank needs, and give them to the three objects.
    raise NotImplementedError("TODO 3 of 3")
