"""A run that is slow on purpose: each batch takes 40 ms to read, and a step 2 ms.

torchrun --standalone --nproc-per-node=2 docs/examples/18_slow_data.py
"""

import time

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    """1,000 rows of 64 numbers, as slow as a busy file system."""

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.full((64,), index / len(self))


dist.init_process_group("gloo")
torch.set_num_threads(1)
model = DDP(nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in DataLoader(Slow(), batch_size=8):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
del model
dist.destroy_process_group()
