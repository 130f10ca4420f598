"""Shard a model that no rank has memory for, and train it in bfloat16.

Use PyTorch's own FSDP. The model has a list of ``blocks``, and other layers.

* Each of ``model.blocks`` is sharded as a group of its own, and the rest of the model
  is the group of the root.
* FSDP frees a block after its forward and gathers it again for its backward. The
  exception is the last block: its backward comes next, so it stays whole until then.
* FSDP gathers parameters in bfloat16, and the model computes in it. Shards, reduced
  gradients and optimizer state are float32.
* No rank ever has memory for more than its shards and a few parameters, not even at
  the start. The model can fill itself with numbers: ``init_weights()`` sets every
  parameter to the numbers that it has on one device, and works on shards, too.

    workshop check 15_fully_shard

The page is docs/lessons/15_sharded_data_parallel/3_fully_shard.rst.
"""

from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def shard(model: nn.Module) -> None:
    """Shard ``model`` in place over all ranks, with the groups and dtypes above."""
    # TODO 1 of 2: create the mixed-precision policy; call fully_shard on each group.
    raise NotImplementedError("TODO 1 of 2")


def build(
    make_model: Callable[[], nn.Module], make_optimizer: MakeOptimizer
) -> tuple[nn.Module, torch.optim.Optimizer]:
    """The sharded model on the CPU, with initialized weights, and its optimizer."""
    # TODO 2 of 2: create the model without memory, shard it, give the shards memory and
    # numbers, and create the optimizer. Choose the order with care.
    raise NotImplementedError("TODO 2 of 2")
