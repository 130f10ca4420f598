"""A grid of ranks: which axes it has, where a rank stands, who shares its row.

    grid = plan_grid(dist.get_world_size(), replicas=1, tensor_ranks=2)
    mesh = make_mesh(grid, device)          # with 4 ranks: data 2 x tensor 2
    mesh["tensor"].get_group()              # the process group of this rank's row

Ranks are laid out as numbers are written: the last axis counts fastest. So the ranks
of a tensor group have consecutive numbers, and launchers put those on one node.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from common.distributed import BadInput


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
    names = tuple(grid.axes)
    # Every rank must reach this line: all take part in making every group.
    return init_device_mesh(
        device.type, tuple(grid.axes.values()), mesh_dim_names=names
    )


def axis_ranks(mesh: DeviceMesh, axis: str) -> tuple[int, ...]:
    """The ranks of this rank's group along an axis, as they are numbered in the world.

    Its own rank alone where the grid has no such axis.
    """
    if axis not in (mesh.mesh_dim_names or ()):
        return (dist.get_rank(),)
    return tuple(dist.get_process_group_ranks(mesh[axis].get_group()))
