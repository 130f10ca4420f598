"""Clip gradients by their norm when each rank has only a shard of them.

Clipping scales a gradient that is too long down to ``max_norm`` and keeps its
direction. The length that counts is that of the *whole* gradient, of all layers,
averaged over the ranks. No rank has it: after the reduce-scatter each has a shard of
every layer. Still, one number from each rank is enough.

    workshop check 15_clip_shards

The page is docs/lessons/15_sharded_data_parallel/4_clip_and_save.rst.
"""

import torch
import torch.distributed as dist


def average_and_clip(
    gradients: list[torch.Tensor], max_norm: float
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """This rank's shards of the mean gradient, scaled; and the norm before that.

    Args:
        gradients: one for each layer, [N n], of this rank's part of the batch, with n
            different for each layer, in float32 or float64; leave them unchanged.
        max_norm: how long the whole mean gradient may be.

    Returns:
        (shards, norm): a list with a tensor [n] for each layer, and a scalar tensor,
        the norm of the whole mean gradient before scaling, the same on all ranks.
    """
    shards = []
    # TODO 1 of 2: for each layer, compute this rank's shard of the mean over the ranks.
    raise NotImplementedError("TODO 1 of 2")
    # TODO 2 of 2: compute the norm of all shards of all ranks. Scale by max_norm /
    # (norm + 1e-6), as PyTorch does, but never make a gradient longer.
    raise NotImplementedError("TODO 2 of 2")
    return shards, norm
