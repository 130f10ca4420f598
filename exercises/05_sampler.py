"""Write the sampler yourself: shuffle, pad, take every N-th.

``DistributedSampler`` sends nothing. Each of N ranks computes the same order of all
samples from the same seed, and takes its own share of it, in three steps:

1. Shuffle the numbers 0 .. size - 1 by the seed *and the epoch*.
2. Pad the list with its own beginning until N divides its length, so that no rank takes
   fewer steps than another. You may have to repeat a short list more than once.
3. Take every N-th number, starting at number ``rank``.

The numbers must be those of torch's own sampler:
``DistributedSampler(range(size), world_size, rank, shuffle, seed)``.

    workshop check 05_sampler

The page is docs/lessons/05_ddp_spawn/2_wrap.rst.
"""

import torch


def epoch_order(size: int, seed: int, epoch: int, shuffle: bool) -> list[int]:
    """All samples in the order of ``epoch``; the same list on every rank."""
    if not shuffle:
        return list(range(size))
    # TODO 1 of 3: draw a permutation from a torch.Generator of your own, seeded with
    # seed + epoch. Don't draw from the global random numbers.
    raise NotImplementedError("TODO 1 of 3")


def pad(indices: list[int], world_size: int) -> list[int]:
    """A new list: ``indices``, padded until ``world_size`` divides their number."""
    # TODO 2 of 3: the list may be shorter than the padding it needs.
    raise NotImplementedError("TODO 2 of 3")


def share(
    size: int,
    world_size: int,
    rank: int,
    *,
    seed: int = 0,
    epoch: int = 0,
    shuffle: bool = True,
) -> list[int]:
    """The samples of ``rank`` in ``epoch``; equally many on every rank."""
    # TODO 3 of 3: order, pad, take every N-th.
    raise NotImplementedError("TODO 3 of 3")
