"""One linear layer on several ranks, cut by its columns and by its rows.

torchrun --standalone --nproc-per-node=2 docs/examples/14_one_layer.py
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


# [start layer]
def by_columns(mesh, layer, x):
    """Each rank computes some of the 12 outputs: x [2, 6] -> y [2, 12]."""
    x = distribute_tensor(x, mesh, [Replicate()])  # all of x on every rank
    weight = distribute_tensor(layer.weight, mesh, [Shard(0)])  # [12, 6] -> [12/t, 6]
    bias = distribute_tensor(layer.bias, mesh, [Shard(0)])  # [12] -> [12/t]
    y = F.linear(x, weight, bias)  # nothing is sent; Shard(1): [2, 12/t] on each rank
    return y.full_tensor()  # an all-gather


def by_rows(mesh, layer, x):
    """Each rank computes a share of all 12 outputs: x [2, 6] -> y [2, 12]."""
    x = distribute_tensor(x, mesh, [Shard(1)])  # [2, 6] -> [2, 6/t]
    weight = distribute_tensor(layer.weight, mesh, [Shard(1)])  # [12, 6] -> [12, 6/t]
    shares = F.linear(x, weight)  # nothing is sent; Partial(): [2, 12] on each rank
    return shares.full_tensor() + layer.bias  # an all-reduce adds the shares up


# [end layer]
def main():
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)  # the same layer and the same x on every rank
    layer, x = nn.Linear(6, 12), torch.randn(2, 6)
    for cut in by_columns, by_rows:
        largest = (cut(mesh, layer, x) - layer(x)).abs().max().item()
        if dist.get_rank() == 0:
            print(f"{cut.__name__}: largest difference {largest:.0e}")
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # see "Let PyTorch do it" in lesson 14


if __name__ == "__main__":
    main()
