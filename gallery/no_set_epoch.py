"""A sampler whose epoch is never set draws the same samples in the same order."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

EPOCHS = 3
data = TensorDataset(torch.arange(12))
# rank 0's share of two; a sampler needs no process group if it is given both numbers
sampler = DistributedSampler(data, num_replicas=2, rank=0)
loader = DataLoader(data, batch_size=6, sampler=sampler)

seen = set()
for epoch in range(EPOCHS):
    (samples,) = next(iter(loader))
    seen.update(samples.tolist())
    print(f"epoch {epoch}: rank 0 of 2 draws {samples.tolist()}")
print(f"In {EPOCHS} epochs rank 0 has seen {len(seen)} of {len(data)} samples")

# The cure: A sampler that knows the epoch draws other samples in each one.
#
#  for epoch in range(EPOCHS):
# +    sampler.set_epoch(epoch)  # on every rank
