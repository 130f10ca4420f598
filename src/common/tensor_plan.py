"""Which columns and rows of the byte GPT's blocks lie on which rank of a mesh axis.

    split_blocks(model, mesh["tensor"])      # before fully_shard, if that comes, too

The plan of Shoeybi et al., 2019 ("Megatron-LM", section 3): the layers that widen are
cut by columns, those that narrow by rows. Each half of a block then computes without
its neighbours until its end, where the parts are added up.
"""

from __future__ import annotations

from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from common.byte_gpt import ByteGPT
from common.gpt_training import check_divides


def block_plan(sequence_parallel: bool = False) -> dict[str, ParallelStyle]:
    """The style of each layer of a block; what is not named stays whole."""
    # how the residual stream [B, T, width] lies between the layers in parallel
    stream = Shard(1) if sequence_parallel else Replicate()
    # Once for query, key and value: without it, each of the three would send the
    # gradient of its own input.
    enter = PrepareModuleInput(input_layouts=stream, desired_input_layouts=Replicate())
    plan = {
        "attention": enter,
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=stream),
        "mlp": enter,
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=stream),
    }
    if sequence_parallel:
        plan["attention_norm"] = plan["mlp_norm"] = SequenceParallel()
    return plan


def split_blocks(model: ByteGPT, mesh: DeviceMesh) -> None:
    """Leave each rank of the axis its columns and rows of every block.

    Raises:
        BadInput: the heads cannot be divided among the ranks.
    """
    check_divides(model.sizes.heads, mesh.size(), "--heads", "ranks of a tensor group")
    for block in model.blocks:
        parallelize_module(block, mesh, block_plan())
