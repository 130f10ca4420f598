"""Gradients of different experts are averaged, as DDP does with all parameters."""

import torch
import torch.distributed as dist
from torch import nn

WIDTH = 4
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
expert = nn.Linear(WIDTH, WIDTH)  # rank r has expert r, which no other rank has
tokens = torch.randn(6, WIDTH)  # that chose it, of all ranks

expert(tokens).square().sum().backward()
alone = expert.weight.grad.norm().item()
for parameter in expert.parameters():
    dist.all_reduce(parameter.grad)  # every rank
    parameter.grad /= ranks
norm = expert.weight.grad.norm().item()
said = f"expert {rank} on rank {rank}: gradient norm {norm:.3f}"
print(f"{said}, should be {alone:.3f}\n", end="", flush=True)
dist.destroy_process_group()

# The cure: Gradients of experts are left alone where no other rank has a copy.
#
# -for parameter in expert.parameters():
# -    dist.all_reduce(parameter.grad)  # every rank
# -    parameter.grad /= ranks
