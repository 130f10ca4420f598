"""Shard four layers over the ranks with FSDP, and count what one rank keeps.

torchrun --standalone --nproc-per-node=4 docs/examples/15_four_layers.py
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
# [start four]
torch.manual_seed(0)  # the same initial weights on every rank
model = nn.Sequential(*[nn.Linear(1000, 1000) for _ in range(4)])
numel = sum(p.numel() for p in model.parameters())
mesh = init_device_mesh("cpu", (dist.get_world_size(),))  # on GPUs "cuda"
for layer in model:
    fully_shard(layer, mesh=mesh)  # gathered on its own, when it computes
fully_shard(model, mesh=mesh)  # the root, always last: whatever no layer has
own = sum(p.to_local().numel() for p in model.parameters())
loss = model(torch.randn(8, 1000)).square().mean()
loss.backward()
print(f"rank {dist.get_rank()} keeps {own:,} of {numel:,} numbers")
# [end four]
dist.destroy_process_group()
# DTensor keeps gloo's threads, which abort some runs while Python shuts down: lesson 14
sys.stdout.flush()
os._exit(0)
