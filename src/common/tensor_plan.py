"""Which columns and rows of the byte GPT's blocks lie on which rank of a mesh axis.

    split_blocks(model, mesh["tensor"])      # before fully_shard, if that comes, too

The plan of Shoeybi et al., 2019 ("Megatron-LM", section 3): the layers that widen are
cut by columns, those that narrow by rows. Each half of a block then computes without
its neighbours until its end, where the parts are added up.
"""

from __future__ import annotations

from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)

from common.byte_gpt import ByteGPT
from common.gpt_training import check_divides


def block_plan() -> dict:
    """The style of each layer of a block; what is not named stays whole."""
    # One input for query, key and value: its gradient is added up over the ranks
    # once, when all three have given their part, instead of once for each.
    once = PrepareModuleInput(
        input_layouts=Replicate(), desired_input_layouts=Replicate()
    )
    return {
        "attention": once,
        "attention.query": ColwiseParallel(),  # whole heads, for they divide
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(),  # adds up over the ranks
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(),  # adds up over the ranks
    }


def split_blocks(model: ByteGPT, mesh: DeviceMesh) -> None:
    """Leave each rank of the axis its columns and rows of every block.

    Raises:
        BadInput: the heads cannot be divided among the ranks.
    """
    check_divides(model.sizes.heads, mesh.size(), "--heads", "ranks of a tensor group")
    for block in model.blocks:
        parallelize_module(block, mesh, block_plan())
