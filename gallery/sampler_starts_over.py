"""A job that resumes in the middle of an epoch reads the epoch's start again."""

from collections import Counter

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SAMPLES, BATCH = 12, 4
data = TensorDataset(torch.arange(SAMPLES))
seen = Counter()


def train(start: int, stop: int) -> None:
    """Batches ``start`` to ``stop`` of epoch 0, as a fresh process would read them."""
    sampler = DistributedSampler(data, num_replicas=1, rank=0)
    sampler.set_epoch(0)
    batches = iter(DataLoader(data, batch_size=BATCH, sampler=sampler))
    for number in range(start, stop):
        (samples,) = next(batches)
        seen.update(samples.tolist())
        print(f"batch {number}: {samples.tolist()}")


train(0, 1)
print("killed after batch 0; resumed from the snapshot at batch 1")
train(1, 3)
twice = sum(count > 1 for count in seen.values())
print(f"after one epoch: {twice} samples seen twice, {SAMPLES - len(seen)} never")

# The cure: A job that resumes in the middle of an epoch skips what it has already read.
#
#      batches = iter(DataLoader(data, batch_size=BATCH, sampler=sampler))
# +    for _ in range(start):
# +        next(batches)  # what the killed process has trained on
