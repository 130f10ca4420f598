"""What src/fsdp.py holds and sends, by formula: from the sizes of the model alone."""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist

from gpt_formulas import FLOAT32, block_activations, head_activations
from text_training import make_gpt, sizes_of


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
