"""torchrun --standalone --nproc-per-node=2 docs/examples/05_five_lines.py"""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(points):
    sampler = DistributedSampler(points)  # 2. this rank's share
    loader = DataLoader(points, batch_size=16, sampler=sampler)
    model = DDP(nn.Linear(1, 1))  # 3. rank 0's weights for all, then mean gradients
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in range(20):
        sampler.set_epoch(epoch)  # 4. another order, the same on all ranks
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return [parameter.item() for parameter in model.parameters()]


x = torch.linspace(-1, 1, 128).reshape(-1, 1)
dist.init_process_group("gloo")  # 1. join the other ranks, here on CPUs
print("slope {:.3f}, offset {:.3f}".format(*train(TensorDataset(x, 3 * x + 1))))
dist.destroy_process_group()  # 5. leave, when the DDP model is gone
