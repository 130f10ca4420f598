"""Cut two layers along the tensor axis of a 2 x 2 grid, then shard along the data axis.

torchrun --standalone --nproc-per-node=4 docs/examples/16_grid_of_four.py
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

dist.init_process_group("gloo")
torch.manual_seed(0)  # the same initial weights on every rank
# [start grid]
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
parallelize_module(mlp, mesh["tensor"], plan)  # first cut the layers
fully_shard(mlp, mesh=mesh["data"])  # then shard what is left of them
for axis in mesh.mesh_dim_names:
    group = dist.get_process_group_ranks(mesh.get_group(axis))
    print(f"rank {dist.get_rank()} is in the {axis} group {group}")
kept = [tuple(mlp[n].weight.to_local().shape) for n in (0, 2)]
print(f"rank {dist.get_rank()} keeps {kept} of the weights")
# [end grid]
dist.destroy_process_group()
# DTensor keeps gloo's threads, which abort some runs while Python shuts down: lesson 14
sys.stdout.flush()
os._exit(0)
