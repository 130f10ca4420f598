"""Tell PyTorch how to cut a block: a plan with columns, rows and slices.

The block is a norm and an MLP with a gate. Each of t ranks passes in its own slice of
the positions, [B, T / t, H], and gets the same slice of the output. B is the batch
size, T the number of positions, H the width::

    parallelize(block)          # the same block on all ranks; cut in place
    y = block(own_slice)        # [B, T / t, H] -> [B, T / t, H]

Each rank must hold its columns of ``gate`` and ``up`` and its rows of ``down``. The
norm works on the slice. Its parameters become DTensors, too, whole on every rank. One
all-gather before the MLP and one reduce-scatter after it are enough, and the same again
in backward.

    workshop check 14_parallelize_module

The page is docs/lessons/14_tensor_parallel/3_pytorch.rst.
It shows the plan of an attention.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)


class GatedMLP(nn.Module):
    """``down(silu(gate(x)) * up(x))``: [B, T, width] -> [B, T, width]."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate, self.up = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """A norm and an MLP, whose output is added to the input."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(width), GatedMLP(width, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mlp(self.norm(x))


def parallelize(block: Block) -> None:
    """Cut ``block`` in place over all t ranks; t divides ``hidden`` and T."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    # TODO 1 of 2: write the plan, and let parallelize_module cut the block. The
    # positions are tensor dim 1.
    raise NotImplementedError("TODO 1 of 2")


def whole_gradients(block: Block) -> dict[str, torch.Tensor]:
    """After backward, on every rank: name of a parameter -> its whole gradient.

    They are plain tensors, and equal to those of one process with the whole sequence.
    Leave every ``.grad`` as it is.
    """
    # TODO 2 of 2: no rank has all of these numbers. A gradient knows where the rest is
    # and what is still to be added up.
    raise NotImplementedError("TODO 2 of 2")
