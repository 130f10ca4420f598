"""Train a byte GPT whose model states are sharded over the ranks: ZeRO by hand.

    torchrun --standalone --nproc-per-node=4 src/15_zero_by_hand.py 100 --stage 0
    torchrun --standalone --nproc-per-node=4 src/15_zero_by_hand.py 100 --stage 3
    torchrun --standalone --nproc-per-node=4 src/15_zero_by_hand.py 99 --mixed-precision

Stage 0 is plain data parallel. Stage 1 shards the state of the optimizer, stage 2 the
gradients as well, stage 3 (the default) the parameters, too.
"""

import argparse

import torch
import torch.distributed as dist

from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import log, one_line_errors
from common.gpt_training import (
    Text,
    check_divides,
    local_batch,
    make_gpt,
    make_optimizer,
    parse_text_training,
)
from common.parallel.zero import STAGES, Zero
from common.process_group import join

LOW = torch.bfloat16


def build(
    args: argparse.Namespace, device: torch.device
) -> tuple[ByteGPT, Zero, torch.optim.Optimizer]:
    """The model, which computes as before, its shards, and their optimizer."""
    check_divides(args.batch_size, dist.get_world_size(), "--batch-size", "ranks")
    model = make_gpt(args, device)
    zero = Zero(model.layers(), args.stage, LOW if args.mixed_precision else None)
    return model, zero, make_optimizer(zero.masters(), args.learning_rate)


# [start step]
def train_step(
    model: ByteGPT,
    zero: Zero,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    """One step: this rank's inputs and targets [B / N, T]; the mean loss of these."""
    zero.begin_step()
    loss = next_byte_loss(model(inputs).float(), targets)
    loss.backward()  # gradients become the mean over the ranks in here
    zero.step(optimizer)
    return loss.detach()


# [end step]
def add_options(parser: argparse.ArgumentParser) -> None:
    stages = "what is sharded: 0 nothing, 1 optimizer state, 2 and gradients, "
    stages += "3 and parameters (default: %(default)s)"
    parser.add_argument("--stage", type=int, choices=STAGES, default=3, help=stages)
    bits = "parameters and gradients of 16 bits, the optimizer's copy of 32"
    parser.add_argument("--mixed-precision", action="store_true", help=bits)


def parse_arguments() -> argparse.Namespace:
    return parse_text_training(__doc__, add_options)


@one_line_errors()
def main() -> None:
    args = parse_arguments()
    text = Text(args, join("15_zero_by_hand.py"))
    model, zero, optimizer = build(args, text.device)
    log(f"Stage {args.stage}")
    for step, inputs, targets in text.steps():
        parts = local_batch(inputs), local_batch(targets)
        loss = train_step(model, zero, optimizer, *parts)
        text.note(step, loss / dist.get_world_size())
    # all ranks score together: in stage 3 no rank has the whole model
    text.report(text.test_loss(lambda tokens: model(tokens).float()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
