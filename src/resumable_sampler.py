"""A sampler that can begin in the middle of an epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch.utils.data import DistributedSampler


class ResumableSampler(DistributedSampler):
    """Shuffles and deals out images like ``DistributedSampler``, from anywhere.

    The order of an epoch follows from seed and epoch alone, and rank r of W takes
    every W-th image from number r on. After any number of steps, all ranks together
    have therefore used the first images of that order, and the rest can be dealt out
    again: to as many ranks as before or to another number of them.
    """

    done = 0  # images of this epoch that all ranks together have used

    def set_position(self, epoch: int, done: int) -> None:
        """Choose the order of ``epoch``, and leave out the first ``done`` images."""
        self.set_epoch(epoch)
        self.done = min(done, len(self.dataset))  # padding is counted as done, too

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        padding = len(self) * self.num_replicas - (len(order) - self.done)
        rest = order[self.done :] + order[:padding]
        return iter(rest[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        """Images that this rank has still to use in this epoch."""
        return math.ceil((len(self.dataset) - self.done) / self.num_replicas)
