"""Train a byte GPT whose model states are sharded over the ranks: ZeRO by hand.

    torchrun --standalone --nproc-per-node=4 src/15_zero_by_hand.py 100 --stage 0
    torchrun --standalone --nproc-per-node=4 src/15_zero_by_hand.py 100 --stage 3
    torchrun --standalone --nproc-per-node=4 src/15_zero_by_hand.py 99 --mixed-precision

Stage 0 is plain data parallel. Stage 1 shards the state of the optimizer, stage 2 the
gradients as well, stage 3 (the default) the parameters, too. Rank 0 prints what it
holds and sends, counted and by formula, and then trains.
"""

import argparse

import torch
import torch.distributed as dist

from common.accounting import Activations, Traffic, compare
from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import describe_world, join, log, one_line_errors
from common.formulas import FLOAT32, block_activations, head_activations
from common.gpt_training import (
    Text,
    check_divides,
    count_parameters,
    local_batch,
    make_gpt,
    make_optimizer,
    mean_over_ranks,
    parse_text_training,
    sizes_of,
)
from common.zero import STAGES, Zero

LOW = torch.bfloat16


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stage",
        type=int,
        choices=STAGES,
        default=3,
        help="what is sharded: 0 nothing, 1 optimizer state, 2 and gradients, "
        "3 and parameters (default: %(default)s)",
    )
    parser.add_argument(
        "--mixed-precision",
        action="store_true",
        help="parameters and gradients of 16 bits, the optimizer's copy of 32",
    )


def shard(model: ByteGPT, args: argparse.Namespace) -> Zero:
    """Cut the layers into shards; the model goes on working as before."""
    return Zero(model.layers(), args.stage, LOW if args.mixed_precision else None)


# [start step]
def train_step(
    model: ByteGPT,
    zero: Zero,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    """One step: this rank's inputs and targets [B / W, T]; the mean loss of these."""
    zero.begin_step()
    loss = next_byte_loss(model(inputs).float(), targets)
    loss.backward()  # gradients become the mean over the ranks in here
    zero.step(optimizer)
    return loss.detach()


# [end step]
# [start formula]
def model_states(
    stage: int, world_size: int, numel: int, mixed: bool = False
) -> dict[str, int]:
    """Bytes of one rank for ``numel`` parameters, section 3.1 and 5 of the paper.

    Adam with 16-bit parameters and gradients keeps 12 bytes more for each parameter:
    a copy of it, its momentum and its variance, of 4 bytes each. In 32 bits it needs
    no copy.
    """
    low, adam = (2, 12) if mixed else (4, 8)

    def part(from_stage: int) -> int:
        return world_size if stage >= from_stage else 1

    states = {
        "parameters": low * numel // part(3),
        "gradients": low * numel // part(2),
        "optimizer state": adam * numel // part(1),
    }
    return states | {"all three": sum(states.values())}


def bytes_per_step(stage: int, world_size: int, numel: int, size: int) -> int:
    """What one rank sends: section 7 of the paper, for rings."""
    times = 3 if stage == 3 else 2
    return times * size * numel * (world_size - 1) // world_size


# [end formula]
def count_a_step(text: Text, args: argparse.Namespace) -> str:
    """The table of what one rank holds and sends, counted in a step on a copy."""
    model = make_gpt(args, text.device)
    zero = shard(model, args)
    optimizer = make_optimizer(zero.masters(), args.learning_rate)
    inputs, targets = map(local_batch, text.batch(0))
    with Traffic() as traffic, Activations(model) as activations:
        train_step(model, zero, optimizer, inputs, targets)
    world_size = dist.get_world_size()
    padded = sum(unit.whole.numel() for unit in zero.units)
    largest = max(unit.whole.numel() for unit in zero.units)
    size = zero.units[0].whole.itemsize
    held = {
        "parameters": zero.parameter_bytes(),
        "gradients": zero.gradient_bytes(),
        "optimizer state": zero.optimizer_bytes(optimizer),
    }
    measured = held | {
        "all three": sum(held.values()),
        "whole for a moment": zero.peak_bytes,
        "sent in a step": traffic.wire_bytes(),
    }
    formula = model_states(args.stage, world_size, padded, args.mixed_precision) | {
        # stage 2: the gradients of one layer; stage 3: its parameters as well
        "whole for a moment": max(args.stage - 1, 0) * size * largest,
        "sent in a step": bytes_per_step(args.stage, world_size, padded, size),
    }
    if not args.mixed_precision:
        sizes = sizes_of(args)
        saved = sizes.blocks * block_activations(sizes, inputs.numel())
        measured["activations"] = activations.peak_bytes
        formula["activations"] = FLOAT32 * saved + head_activations(
            sizes, *inputs.shape
        )
    padding = padded - count_parameters(model)
    return f"{padding} numbers of padding\n" + compare(
        measured, formula, "bytes on rank 0"
    )


def train(args: argparse.Namespace, device: torch.device) -> None:
    """Train, print the results, and write them where ``--metrics`` says."""
    check_divides(args.batch_size, dist.get_world_size(), "--batch-size", "ranks")
    text = Text(args, device)
    model = make_gpt(args, device)
    log(
        f"{count_parameters(model):,} parameters, stage {args.stage}, on "
        f"{describe_world(device)}"
    )
    log(count_a_step(text, args))
    zero = shard(model, args)
    optimizer = make_optimizer(zero.masters(), args.learning_rate)
    for step, inputs, targets in text.steps():
        loss = train_step(
            model, zero, optimizer, local_batch(inputs), local_batch(targets)
        )
        text.note(step, mean_over_ranks(loss))
    # all ranks score together: in stage 3 none has the whole model
    text.report(text.test_loss(lambda tokens: model(tokens).float()))


@one_line_errors
def main() -> None:
    args = parse_text_training(__doc__, add_options)
    train(args, join("15_zero_by_hand.py"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
