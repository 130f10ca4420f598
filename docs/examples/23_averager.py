"""Local SGD with PyTorch's averager: the mean of the parameters every 20 steps.

torchrun --standalone --nproc-per-node=2 docs/examples/23_averager.py
"""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager


def spread(weight: Tensor) -> float:
    """How far a weight of this rank is from that of rank 0, at most; on all ranks."""
    first = weight.detach().clone()
    dist.broadcast(first, src=0)  # every rank must reach this line
    distance = (weight.detach() - first).abs().max()
    dist.all_reduce(distance, op=dist.ReduceOp.MAX)  # and this one
    return distance.item()


dist.init_process_group("gloo")
torch.manual_seed(0)  # equal weights at first
model = nn.Linear(8, 1)
generator = torch.Generator().manual_seed(dist.get_rank())  # other data on each rank
# [start averager]
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
averager = PeriodicModelAverager(period=20)
for step in range(22):
    inputs = torch.randn(16, 8, generator=generator)
    loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()  # without DDP: nothing is sent
    optimizer.step()
    averager.average_parameters(model.parameters())  # every rank; sends in some steps
    # [end averager]
    distance = spread(model.weight)
    if dist.get_rank() == 0 and (step < 2 or step > 18):
        print(f"step {step}: ranks differ by {distance:.4f}")
dist.destroy_process_group()
