"""Average a gradient over replicas of shards, as HSDP does.

The grid has the axes "replica" and "data". Each row of the grid is a node, which holds
a complete set of shards: its d ranks gather from each other. Each column has the same
shard on every node. Each rank has different samples, and so a different gradient of the
whole parameter. Average these over *all* ranks; each rank needs its shard of the mean.

Sending within a node is fast, and between nodes it's slow. So no rank may send more
than a shard over the replica axis.

The parameter is a flat tensor, [P], and P needn't be a multiple of d. All shards have
the same length S = ceil(P / d), so zeros are appended to the parameter. One or more of
the last shards may hold nothing but zeros.

    workshop check 16_replicas

The page is docs/lessons/16_two_dimensions/3_more_axes.rst.
"""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh


def shard_of_mean(gradient: Tensor, mesh: DeviceMesh) -> Tensor:
    """This rank's shard, [S], of the mean of all ranks' gradients, [P].

    Axis 0 of ``mesh`` is "replica", axis 1 is "data". ``mesh.size(1)`` is d, and
    ``mesh.get_group("data")`` are the ranks of this rank's node. Leave ``gradient`` as
    it is.
    """
    shards = mesh.size(1)
    # TODO 1 of 1: fill up with zeros. dist.reduce_scatter leaves a shard on each rank:
    # over which axis, and what is then left to do over the other one?
    raise NotImplementedError("TODO 1 of 1")
