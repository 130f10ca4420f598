"""What a byte GPT holds, by formula: to be compared with what is counted.

With W for the width of the residual stream, h heads and T bytes of context, per block:

* parameters: 4 (W^2 + W) of attention, 8 W^2 + 5 W of the MLP, 4 W of the two norms,
  together 12 W^2 + 13 W (Narayanan et al., 2021, "Efficient Large-Scale Language Model
  Training on GPU Clusters Using Megatron-LM", section 5.1);
* activations saved for backward: 16 W + h + 4 numbers for each byte of the batch. The
  34 W bytes at two bytes a number of Korthikanti et al., 2022 ("Reducing Activation
  Recomputation in Large Transformer Models", section 4.1) hold 2 W of dropout masks,
  which this model does not have. Their 5 a s^2 b for the attention scores falls away,
  too: scaled_dot_product_attention saves one number per head and byte instead (here
  the CPU's, torch 2.13), and each of the two norms saves two.
"""

from __future__ import annotations

import argparse
import math

import torch
import torch.distributed as dist

from common.byte_gpt import BYTES, Sizes
from common.gpt_training import make_gpt, sizes_of
from common.mesh import Grid

FLOAT32 = 4  # bytes


def block_parameters(sizes: Sizes) -> int:
    """Numbers in the parameters of one block."""
    return 12 * sizes.width**2 + 13 * sizes.width


def embed_parameters(sizes: Sizes) -> int:
    """Numbers in the two tables of the embedding."""
    return (BYTES + sizes.context) * sizes.width


def head_parameters(sizes: Sizes) -> int:
    """Numbers in the last norm and the layer that scores bytes."""
    return 2 * sizes.width + (sizes.width + 1) * BYTES


def model_parameters(sizes: Sizes) -> int:
    """Numbers in all parameters."""
    blocks = sizes.blocks * block_parameters(sizes)
    return embed_parameters(sizes) + blocks + head_parameters(sizes)


def block_activations(sizes: Sizes, tokens: int) -> int:
    """Numbers that one block saves for backward, for ``tokens`` bytes in all."""
    return (16 * sizes.width + sizes.heads + 4) * tokens


def head_activations(sizes: Sizes, batch_size: int, context: int) -> int:
    """Bytes that embedding, head and loss save for a batch of [B, T] tokens.

    For each token: two whole numbers of 8 bytes (itself, its target), the input of the
    norm and its two statistics, its result, and the logarithms of 256 chances. Beside
    that one whole number for each place, and the loss's total weight.
    """
    tokens = batch_size * context
    numbers = (2 * sizes.width + 2 + BYTES) * tokens + 1
    return FLOAT32 * numbers + 8 * (2 * tokens + context)


# [start formula]
def shard_numbers(parameter: torch.Tensor) -> int:
    """Numbers of one parameter's shard: dim 0 is cut, and rounded up to whole rows."""
    rows, *rest = parameter.shape
    return -(-rows // dist.get_world_size()) * torch.Size(rest).numel()


def by_formula(args: argparse.Namespace, tokens_shape: torch.Size) -> dict[str, int]:
    """Bytes of rank 0, from the sizes of the model alone."""
    world_size, sizes = dist.get_world_size(), sizes_of(args)
    model = make_gpt(args, torch.device("meta"))
    groups = [sum(map(shard_numbers, block.parameters())) for block in model.blocks]
    whole = sum(map(shard_numbers, model.parameters()))
    root, block = whole - sum(groups), groups[0]
    size = 2 if args.mixed_precision else FLOAT32  # of what is gathered
    count = len(groups)
    if args.keep_whole:
        blocks, gathers = count + min(count, 2), root + sum(groups)
    else:
        ahead = min(args.prefetch or 1, count - 1)
        blocks, gathers = 2 + ahead, root + 2 * sum(groups)
    # What is in use, the buffers it arrived in and that of the group before, which is
    # let go only then. When the first block arrives, that is the root's.
    in_flight = max(root + blocks * block, 2 * root + 2 * block)
    saved = sizes.blocks * block_activations(sizes, tokens_shape.numel())
    sent = (world_size - 1) * (size * gathers + FLOAT32 * whole)
    formula = {
        "parameters": FLOAT32 * whole,
        "gradients": FLOAT32 * whole,
        "optimizer state": 2 * FLOAT32 * whole,
        "whole at once": size * world_size * in_flight,
        "sent in a step": sent,
        "activations": FLOAT32 * saved + head_activations(sizes, *tokens_shape),
    }
    if args.mixed_precision:
        del formula["activations"]  # some in 16 bits, some in 32
    return formula


# [end formula]

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
