"""Work out the steps of an epoch before you start the ranks.

With more ranks, an epoch has fewer steps, and each step has more images. The weights
are updated fewer times, so work out both numbers before you compare two runs.

Every rank has a ``DistributedSampler`` and a ``DataLoader`` with batches of
``batch_size``. The sampler gives all ranks equally many images. If that isn't possible,
it repeats some images. The loader keeps its last batch, even if it's smaller.

    workshop check 05_steps

The page is docs/lessons/05_ddp_spawn/1_five_lines.rst.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Epoch:
    """What all ranks do in one epoch, together."""

    steps: int
    in_full_step: int  # images of all ranks in a step with full batches
    in_last_step: int  # images of all ranks in the last step
    repeated: int  # images that the sampler repeats


def epoch_of(images: int, batch_size: int, ranks: int) -> Epoch:
    """The epoch of ``images`` images, with batches of ``batch_size`` on each rank."""
    # TODO 1 of 1: how many images does one rank read, and in how many batches?
    # [start answer 1]
    share = math.ceil(images / ranks)
    steps = math.ceil(share / batch_size)
    in_last_batch = share - (steps - 1) * batch_size
    return Epoch(
        steps=steps,
        in_full_step=batch_size * ranks,
        in_last_step=in_last_batch * ranks,
        repeated=share * ranks - images,
    )
    # [end answer 1]
