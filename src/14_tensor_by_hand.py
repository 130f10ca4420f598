"""Train a byte GPT of which each rank holds a part of every layer, by hand.

    torchrun --standalone --nproc-per-node=2 src/14_tensor_by_hand.py 300
    torchrun --standalone --nproc-per-node=4 src/14_tensor_by_hand.py 300
    torchrun --standalone --nproc-per-node=4 src/14_tensor_by_hand.py 300 \\
        --sequence-parallel

All ranks see the same batch; the ranks must divide --heads. The losses are those of
13_train_gpt.py, to rounding. With --sequence-parallel the ranks must divide --context.
"""

import argparse

import torch
import torch.distributed as dist

from common import tensor_formulas as formulas
from common.accounting import (
    compare,
    count_step,
)
from common.byte_gpt import ByteGPT
from common.distributed import describe_world, join, log, one_line_errors
from common.gpt_training import (
    Text,
    count_parameters,
    make_gpt,
    make_optimizer,
    parse_text_training,
    sizes_of,
)
from common.tensor_collectives import SLICES, WHOLE, Borders
from common.tensor_layers import (
    add_options,
    check_sizes,
    split_gpt,
    sum_kept_whole,
    vocabulary_loss,
    whole_scores,
)


# [start step]
def train_step(
    model: ByteGPT,
    borders: Borders,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> float:
    """One step: inputs and targets [B, T], the same on all ranks; the mean loss."""
    optimizer.zero_grad()
    loss = vocabulary_loss(model(inputs), targets)
    loss.backward()
    if borders.sliced:
        sum_kept_whole(model)
    optimizer.step()
    return loss.item()


# [end step]
def count_a_step(borders: Borders, text: Text, args: argparse.Namespace) -> str:
    """The table of what rank 0 holds and sends, counted in a step on a copy."""
    copy = make_gpt(args, text.device)
    split_gpt(copy, borders)
    optimizer = make_optimizer(copy.parameters(), args.learning_rate)
    inputs, targets = text.batch(0)
    measured = count_step(
        copy, optimizer, lambda: train_step(copy, borders, optimizer, inputs, targets)
    )
    world = dist.get_world_size(), dist.get_rank()
    formula = formulas.by_hand(sizes_of(args), len(inputs), *world, borders.sliced)
    return compare(measured, formula, "bytes on rank 0")


def train(args: argparse.Namespace, device: torch.device) -> None:
    """Split the model, train it, print the numbers."""
    borders = SLICES if args.sequence_parallel else WHOLE
    text = Text(args, device)
    model = make_gpt(args, device)
    log(f"{count_parameters(model):,} parameters on {describe_world(device)}")
    split_gpt(model, borders)
    optimizer = make_optimizer(model.parameters(), args.learning_rate)
    log(count_a_step(borders, text, args))
    for step, inputs, targets in text.steps():
        text.note(step, train_step(model, borders, optimizer, inputs, targets))
    # Every rank: each has the scores of its own bytes only.
    text.report(text.test_loss(lambda inputs: whole_scores(model(inputs))))


@one_line_errors
def main() -> None:
    args = parse_text_training(__doc__, add_options)
    device = join("14_tensor_by_hand.py")
    check_sizes(args)
    train(args, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
