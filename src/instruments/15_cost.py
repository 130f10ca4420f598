"""Count what one of N ranks holds and sends in a step of sharded data parallel.

    torchrun --standalone --nproc-per-node=4 src/instruments/15_cost.py \\
        src/15_zero_by_hand.py 100 --stage 2 --mixed-precision
    torchrun --standalone --nproc-per-node=4 src/instruments/15_cost.py \\
        src/15_fsdp.py 100 --keep-whole

It runs one step of the program; rank 0 prints what it counted beside the formulas.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.byte_gpt import ByteGPT, sizes_of
from common.cost.counting import (
    FLOAT32,
    activations,
    compare,
    load_program,
    model_states,
)
from common.cost.measure import (
    Activations,
    PeakBytes,
    Traffic,
    UnshardedBytes,
    count_step,
    optimizer_bytes,
    storage_bytes,
)
from common.distributed import log, one_line_errors
from common.gpt_training import Batches, local_batch, run_and_exit
from common.process_group import join_or_alone

ALONE = "it holds every shard, so gathering and reducing send nothing"


# [start zero]
def states_of_zero(
    stage: int, world_size: int, numel: int, mixed: bool = False
) -> dict[str, int]:
    """Bytes of one rank for ``numel`` parameters, section 3.1 and 5 of the paper.

    Adam with 16-bit parameters and gradients keeps 12 bytes more for each parameter: a
    copy, momentum and variance, of 4 bytes each. In 32 bits it needs no copy.
    """
    low, adam = (2, 12) if mixed else (4, 8)
    parts = {first: world_size if stage >= first else 1 for first in (1, 2, 3)}
    states = {
        "parameters": low * numel // parts[3],
        "gradients": low * numel // parts[2],
        "optimizer state": adam * numel // parts[1],
    }
    return states | {"all three": sum(states.values())}


def bytes_per_step(stage: int, world_size: int, numel: int, size: int) -> int:
    """What one rank sends: section 7 of the paper, for rings."""
    times = 3 if stage == 3 else 2
    return times * size * numel * (world_size - 1) // world_size


# [end zero]
# [start fsdp]
def shard_numel(parameter: torch.Tensor) -> int:
    """Elements of one parameter's shard: dim 0 is cut, rounded up to whole rows."""
    rows, *rest = parameter.shape
    return -(-rows // dist.get_world_size()) * torch.Size(rest).numel()


def fsdp_formula(config, batch_size: int) -> dict[str, int]:
    """Bytes of rank 0 in 15_fsdp.py, for ``batch_size`` pieces of text on it.

    ``config``: the Config of that program.
    """
    world_size, sizes = dist.get_world_size(), sizes_of(config)
    with torch.device("meta"):  # shapes only
        model = ByteGPT(sizes)
    groups = [sum(map(shard_numel, block.parameters())) for block in model.blocks]
    whole = sum(map(shard_numel, model.parameters()))
    root, block, count = whole - sum(groups), groups[0], len(groups)
    size = 2 if config.mixed_precision else FLOAT32  # of what is gathered
    if config.keep_whole:
        blocks, gathers = count + min(count, 2), root + sum(groups)
    else:
        ahead = min(config.prefetch or 1, count - 1)
        blocks, gathers = 2 + ahead, root + 2 * sum(groups)
    # What is in use, the buffers that received it and that of the group before, which
    # is freed only then. When the first block is gathered, that is the root's.
    in_flight = max(root + blocks * block, 2 * root + 2 * block)
    formula = model_states(whole) | {
        "whole at once": size * world_size * in_flight,
        "sent in a step": (world_size - 1) * (size * gathers + FLOAT32 * whole),
        "activations": activations(sizes, batch_size),
    }
    if world_size == 1:
        del formula["whole at once"]  # FSDP uses the shards themselves (torch 2.13)
    if config.mixed_precision:
        del formula["activations"]  # some in 16 bits, some in 32
    return formula


# [end fsdp]
def count_fsdp(program: SimpleNamespace, config, device: torch.device) -> str:
    """The table of what rank 0 holds and sends in a step of 15_fsdp.py."""
    batch = list(map(local_batch, Batches(config, device).of_step(0)))
    both = program.build(config, device)
    with UnshardedBytes() as whole:
        measured = count_step(*both, partial(program.train_step, *both, *batch))
    measured["whole at once"] = whole.peak_bytes
    return compare(measured, fsdp_formula(config, len(batch[0])), "bytes on rank 0")


def passing(units) -> Iterator[torch.Tensor]:
    """What of each layer is whole only for a moment: it is freed again."""
    for unit in units:
        yield from [unit.gradients] if unit.stage >= 2 else []
        yield from [unit.whole] if unit.stage == 3 else []


def held(units, optimizer: torch.optim.Optimizer) -> dict[str, int]:
    """Bytes that a rank holds now; masters of 16-bit shards count as state."""
    copies = [u.master for u in units if u.master.dtype != u.shard.dtype]
    pairs = [(unit.gradients, unit.gradient_shard) for unit in units]
    states = {
        "parameters": storage_bytes(x for u in units for x in (u.whole, u.shard)),
        "gradients": storage_bytes(tensor for pair in pairs for tensor in pair),
        "optimizer state": optimizer_bytes(optimizer) + storage_bytes(copies),
    }
    return states | {"all three": sum(states.values())}


def count_zero(program: SimpleNamespace, config, device: torch.device) -> str:
    """The table of what rank 0 holds and sends in a step of 15_zero_by_hand.py."""
    inputs, targets = map(local_batch, Batches(config, device).of_step(0))
    model, units, optimizer = program.build(config, device)
    peak = PeakBytes(lambda: storage_bytes(passing(units)))
    with Traffic() as traffic, peak, Activations(model) as saved:
        program.train_step(model, units, optimizer, inputs, targets)
    layers, world_size = [unit.whole for unit in units], dist.get_world_size()
    padded, size = sum(flat.numel() for flat in layers), layers[0].itemsize
    measured = held(units, optimizer) | {
        "whole for a moment": peak.peak_bytes,
        "sent in a step": traffic.wire_bytes(),
        "activations": saved.peak_bytes,
    }
    stage, mixed = config.stage, config.mixed_precision
    formula = states_of_zero(stage, world_size, padded, mixed) | {
        # stage 2: the gradients of one layer; stage 3: its parameters as well
        "whole for a moment": max(stage - 1, 0) * size * max(map(len, layers)),
        "sent in a step": bytes_per_step(stage, world_size, padded, size),
    }
    if not mixed:
        formula["activations"] = activations(sizes_of(config), len(inputs))
    padding = padded - sum(p.numel() for p in model.parameters())
    log(f"Stage {stage}, {padding} numbers of padding")
    return compare(measured, formula, "bytes on rank 0")


COUNTS = {"15_zero_by_hand.py": count_zero, "15_fsdp.py": count_fsdp}


@one_line_errors
def main() -> None:
    program = load_program(__doc__, COUNTS)
    config = program.parse_arguments()
    device = join_or_alone(ALONE)
    log(COUNTS[program.path.name](program, config, device))
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
