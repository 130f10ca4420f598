"""Cut a weight along the tensor axis, then shard the rest along the data axis.

The grid has the axes "data" and "tensor". The ranks of a tensor group compute one
layer together, on the same samples, and each has its part of the weight, the *cut*.
The ranks of a data group have the same cut but different samples. So they needn't all
keep the whole cut: each keeps some of its rows, its *shard*.

* ``own_shard``: what this rank keeps of a weight, [out, in]. Tensor dim 0 is cut if
  the layer is cut by columns, and tensor dim 1 if it's cut by rows: the layer
  computes x @ weight.T. The shards are always along tensor dim 0.
* ``gather_cut``: in forward, the layer needs this rank's whole cut.
* ``reduce_gradient``: after backward, each rank has the gradient of its cut, from its
  own samples. Each loss is a mean over the samples of one data rank.

All sizes are multiples of the numbers of ranks. Take what you need of the grid from
``mesh.size(0)`` (data) and ``mesh.size(1)`` (tensor), ``mesh.get_local_rank("data")``
and ``mesh.get_group("data")``, and the same with "tensor".

    workshop check 16_cut_then_shard

The page is docs/lessons/16_two_dimensions/2_cut_then_shard.rst.
"""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh


def own_shard(weight: Tensor, cut_dim: int, mesh: DeviceMesh) -> Tensor:
    """A copy of the part of ``weight`` that this rank keeps, to be trained."""
    # TODO 1 of 3: which of the two axes is first?
    raise NotImplementedError("TODO 1 of 3")


def gather_cut(shard: Tensor, mesh: DeviceMesh) -> Tensor:
    """This rank's cut, from the shards of some ranks."""
    # TODO 2 of 3: an all-gather. Over which axis?
    raise NotImplementedError("TODO 2 of 3")


def reduce_gradient(gradient: Tensor, mesh: DeviceMesh) -> Tensor:
    """The gradient of this rank's shard, averaged over all samples.

    ``gradient`` is that of this rank's cut, of the loss of its own samples.
    """
    # TODO 3 of 3: which ranks have a gradient of the same numbers? Average over them,
    # and return the rows of this rank's shard.
    raise NotImplementedError("TODO 3 of 3")
