"""What a rank of a grid holds of the byte GPT, and sends in a step, by formula.

Per block, with W for the width, h heads and T ranks of a tensor group, a rank's columns
and rows are 12 W^2/T + 7 W/T + 6 W numbers: the biases of the two layers cut by rows,
and the norms, stay whole (Shoeybi et al., 2019, "Megatron-LM", section 3). Of these it
keeps a D-th part, with D ranks along the data axis (Zhao et al., 2023, "PyTorch FSDP",
section 3). Where D does not divide the rows of a tensor, rank 0 holds one row more
than others; these are the numbers of rank 0.

A step sends for P numbers in the blocks of a rank, and R in embedding and head:

* along the tensor axis four all_reduces per block of the residual stream, two forward
  and two backward (Shoeybi et al., section 3);
* along the data axis an all_gather of P in forward and again in backward, one of R,
  and a reduce_scatter of both (Rajbhandari et al., 2020, "ZeRO", section 7.2.2);
* along the replica axis an all_reduce of the shards of the gradients.
"""

from __future__ import annotations

import math

from byte_gpt import BYTES, Sizes
from gpt_formulas import FLOAT32, head_activations
from grid import Grid

Shape = tuple[int, ...]


def block_shapes(sizes: Sizes, tensor: int) -> list[Shape]:
    """Shapes of the parameters of one block on a rank of a tensor group."""
    width, hidden = sizes.width, sizes.hidden
    cut, narrow = width // tensor, hidden // tensor
    norms = 4 * [(width,)]
    columns = 3 * [(cut, width), (cut,)] + [(narrow, width), (narrow,)]
    rows = [(width, cut), (width,), (width, narrow), (width,)]
    return norms + columns + rows


def whole_shapes(sizes: Sizes) -> list[Shape]:
    """Shapes of what a tensor group does not cut: embedding and head."""
    width = sizes.width
    embed = [(BYTES, width), (sizes.context, width)]
    return [*embed, (width,), (width,), (BYTES, width), (BYTES,)]


def shard_numel(shapes: list[Shape], data: int) -> int:
    """Numbers that rank 0 keeps: the rows of each tensor are dealt out."""
    return sum(-(-rows // data) * math.prod(rest) for rows, *rest in shapes)


def held(sizes: Sizes, grid: Grid, batch_size: int) -> dict[str, int]:
    """Bytes on rank 0, in float32; ``batch_size`` is the global one."""
    blocks = sizes.blocks * shard_numel(block_shapes(sizes, grid.tensor), grid.data)
    numbers = blocks + shard_numel(whole_shapes(sizes), grid.data)
    pieces = batch_size // grid.batch_parts
    inside = 12 * sizes.width + sizes.heads  # of attention and MLP: cut
    at_the_ends = 4 * sizes.width + 4  # norms and what goes into them: whole
    saved = (at_the_ends + inside // grid.tensor) * pieces * sizes.context
    return {
        "parameters": FLOAT32 * numbers,
        "gradients": FLOAT32 * numbers,
        "optimizer state": 2 * FLOAT32 * numbers,
        "activations": FLOAT32 * sizes.blocks * saved
        + head_activations(sizes, pieces, sizes.context),
    }


def sent(sizes: Sizes, grid: Grid, batch_size: int) -> dict[str, int]:
    """Bytes that rank 0 sends in a step along each axis, by the ring algorithms."""
    blocks = sizes.blocks * shard_numel(block_shapes(sizes, grid.tensor), grid.data)
    ends = shard_numel(whole_shapes(sizes), grid.data)
    shard = FLOAT32 * (blocks + ends)
    stream = FLOAT32 * (batch_size // grid.batch_parts) * sizes.context * sizes.width
    gathered = FLOAT32 * (2 * blocks + ends) * (grid.data - 1)
    scattered = shard * (grid.data - 1)
    bytes_on_axis = {
        "replica": 2 * shard * (grid.replicas - 1) / grid.replicas,
        "data": gathered + scattered,
        "tensor": 4 * sizes.blocks * 2 * stream * (grid.tensor - 1) / grid.tensor,
    }
    return {f"{axis} axis": round(value) for axis, value in bytes_on_axis.items()}


def calls(sizes: Sizes, grid: Grid) -> dict[str, int]:
    """Collectives of a rank in a step, along each axis of more than one rank."""
    per_step = {
        "replica": sizes.blocks + 1,  # all_reduce
        "data": 3 * sizes.blocks + 2,  # all_gather twice and once, reduce_scatter
        "tensor": 4 * sizes.blocks,  # all_reduce
    }
    return {
        f"{axis} axis": n for axis, n in per_step.items() if grid.axes.get(axis, 1) > 1
    }
