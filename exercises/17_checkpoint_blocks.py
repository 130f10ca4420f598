"""Checkpoint just enough blocks to fit into the available memory.

Between forward and backward, a block that is checkpointed keeps only its input, and any
other block keeps everything that backward needs. Each checkpointed block is computed a
second time, so checkpoint as few as possible.

    workshop check 17_checkpoint_blocks

The page is docs/lessons/17_speed/2_bits_and_memory.rst.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def choose_blocks(saved: Sequence[int], inputs: Sequence[int], limit: int) -> set[int]:
    """The numbers of the blocks to checkpoint, as few as possible.

    Args:
        saved: for each block, the bytes it keeps if it isn't checkpointed.
        inputs: for each block, the bytes it keeps if it is.
        limit: how many bytes all blocks may keep together.

    Raises:
        ValueError: not even checkpointing every block is enough.
    """
    chosen = set()
    # TODO 1 of 2: add the blocks to checkpoint to `chosen`, or raise ValueError.
    raise NotImplementedError("TODO 1 of 2")
    return chosen


def forward(
    blocks: Sequence[nn.Module], x: torch.Tensor, chosen: set[int]
) -> torch.Tensor:
    """The output of all blocks in turn; those in ``chosen`` keep only their input.

    ``x`` may be data, which requires no gradient; the blocks' parameters do.
    """
    for number, block in enumerate(blocks):
        # TODO 2 of 2: compute the block's output; run chosen blocks with `checkpoint`.
        raise NotImplementedError("TODO 2 of 2")
    return x
