"""A grid of ranks, and which part of each block lies where along its tensor axis.

    grid = plan_grid(dist.get_world_size(), replicas=1, tensor_ranks=2)
    mesh = make_mesh(grid, device)          # with 4 ranks: data 2 x tensor 2
    mesh["tensor"].get_group()              # the process group of this rank's row
    split_blocks(model, mesh["tensor"])     # before fully_shard

Ranks are laid out as numbers are written: the last axis varies fastest. So the ranks
of a tensor group have consecutive numbers, and launchers put those on one node.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Placement, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from common.byte_gpt import ByteGPT
from common.distributed import BadInput
from common.gpt_training import check_divides


@dataclass(frozen=True)
class Grid:
    """How many ranks there are along each mesh axis, the slowest axis first."""

    replicas: int = 1  # hold the same shards, see other pieces of text
    data: int = 1  # hold other shards, see other pieces of text
    tensor: int = 1  # hold other columns, see the same pieces of text

    @property
    def batch_parts(self) -> int:
        """Into how many parts a global batch is divided."""
        return self.replicas * self.data

    @property
    def axes(self) -> dict[str, int]:
        """Ranks along each axis that there is; the data axis is always there."""
        sizes = {"replica": self.replicas, "data": self.data, "tensor": self.tensor}
        return {name: n for name, n in sizes.items() if n > 1 or name == "data"}

    def batch_part(self, rank: int) -> int:
        """The part of the global batch that a rank sees: one for a tensor group."""
        return rank // self.tensor

    def __str__(self) -> str:
        return " x ".join(f"{name} {n}" for name, n in self.axes.items())


def plan_grid(world_size: int, replicas: int, tensor_ranks: int) -> Grid:
    """The grid of all ranks; what the two options leave is the data axis.

    Raises:
        BadInput: the options do not divide the number of ranks.
    """
    data, rest = divmod(world_size, replicas * tensor_ranks)
    if rest or not data:
        of_one = replicas * tensor_ranks
        raise BadInput(
            f"--replicas {replicas} x --tensor-ranks {tensor_ranks} do not divide "
            f"a world of {world_size}: start a multiple of {of_one} ranks, or choose "
            "smaller numbers"
        )
    return Grid(replicas, data, tensor_ranks)


def make_mesh(grid: Grid, device: torch.device) -> DeviceMesh:
    """The device mesh of all ranks, with a process group for each row and column."""
    names, sizes = tuple(grid.axes), tuple(grid.axes.values())
    # Every rank must reach this line: making any group takes all ranks.
    return init_device_mesh(device.type, sizes, mesh_dim_names=names)


# The plan of Shoeybi et al., 2019 ("Megatron-LM", section 3): layers that widen are cut
# by columns, layers that narrow by rows.
def _attention_plan(stream: Placement) -> dict[str, ParallelStyle]:
    """The styles of an attention; ``stream``: how [B, T, width] lies outside of it."""
    return {
        # Once for query, key and value: without it, each of the three would send the
        # gradient of its own input.
        "attention": PrepareModuleInput(
            input_layouts=stream, desired_input_layouts=Replicate()
        ),
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=stream),
    }


def block_plan(sequence_parallel: bool = False) -> dict[str, ParallelStyle]:
    """The style of each layer of a block; what is not named stays whole."""
    # how the residual stream [B, T, width] lies between the layers in parallel
    stream = Shard(1) if sequence_parallel else Replicate()
    plan = _attention_plan(stream) | {
        "mlp": PrepareModuleInput(
            input_layouts=stream, desired_input_layouts=Replicate()
        ),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=stream),
    }
    if sequence_parallel:
        plan["attention_norm"] = plan["mlp_norm"] = SequenceParallel()
    return plan


def split_blocks(
    model: ByteGPT, mesh: DeviceMesh, sequence_parallel: bool = False
) -> None:
    """Leave each rank of the axis its columns and rows of every block.

    Raises:
        BadInput: the heads cannot be divided among the ranks.
    """
    check_divides(model.sizes.heads, mesh.size(), "--heads", "ranks")
    for block in model.blocks:
        parallelize_module(block, mesh, block_plan(sequence_parallel))
