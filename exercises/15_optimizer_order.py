"""Repair an FSDP program in which no parameter ever changes.

The program below runs without an error: it computes losses and gradients, and the
optimizer steps. But the parameters keep their initial values. Find out why, and repair
it. The intent of the program is right:

* each of ``model.blocks`` is sharded as a group of its own, so that one block at a time
  is whole, and the rest of the model is the group of the root;
* weight decay applies to matrices, that is parameters of two dimensions or more, and
  not to biases and norms.

    workshop check 15_optimizer_order

The page is docs/lessons/15_sharded_data_parallel.rst.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

MakeOptimizer = Callable[[list[dict]], torch.optim.Optimizer]
DECAY = 0.1


def shard(model: nn.Module, make_optimizer: MakeOptimizer) -> torch.optim.Optimizer:
    """Shard ``model`` in place over all ranks; return its optimizer."""
    # TODO 1 of 1: delete the `raise`, read what the check says, and repair the lines.
    raise NotImplementedError("TODO 1 of 1")
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
    optimizer = make_optimizer(groups)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return optimizer
