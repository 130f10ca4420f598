"""Stop training early, on all ranks in the same step or on none.

Each rank has the loss of its own validation samples. If every rank decided by its own
loss, some would leave the training loop, and the others would wait for them forever.

Check your answer with: workshop check 90_agree_to_stop

The page is docs/lessons/03_collectives/index.rst
"""

import torch
import torch.distributed as dist


def should_stop(loss: float, target: float) -> bool:
    """Whether the mean of the ranks' losses is below ``target``; equal on all ranks."""
    # TODO 1 of 1: decide by the mean over the ranks, not by this rank's loss.
    # [start answer 1]
    # Every rank; [] -> [], the sum in place, 8 bytes.
    total = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(total)
    return bool(total / dist.get_world_size() < target)
    # [end answer 1]
