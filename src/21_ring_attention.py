"""Train a byte GPT whose sequences are cut over ranks: keys and values go around.

    torchrun --standalone --nproc-per-node=2 src/21_ring_attention.py 300
    torchrun --standalone --nproc-per-node=4 src/21_ring_attention.py 300 --zigzag
    torchrun --standalone --nproc-per-node=4 src/21_ring_attention.py 300 --gather

All ranks get the same batch, and each computes on its part of every sequence; twice
their number must divide --context. With --gather, each rank gathers the keys and values
of all ranks before it computes. The losses equal those of 13_train_gpt.py, up to
rounding.
"""

import argparse
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from common import gpt_training
from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import one_line_errors
from common.parallel import context_parallel as cp
from common.parallel.context_parallel import Cut
from common.parallel.ring_attention import gather_attention, ring_attention
from common.process_group import join_or_alone, refuse_messages_between_shared

ALONE = "it has all of every sequence, and passes nothing round"


@dataclass(frozen=True)
class Config(gpt_training.TextConfig):
    """The command line; the same on all ranks."""

    zigzag: bool  # an early and a late chunk of every sequence for each rank
    gather: bool  # all keys and values at once


def build(
    config: Config, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer, Cut]:
    """The model that one device would train, for own tokens; its optimizer; the cut."""
    model = gpt_training.make_gpt(config, device)
    cut = cp.whole_world(config.zigzag)
    method = gather_attention if config.gather else ring_attention
    cp.split_gpt(model, cut, method)
    optimizer = gpt_training.make_optimizer(model.parameters(), config.learning_rate)
    return model, optimizer, cut


def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    cut: Cut,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """One step: inputs and targets [B, T], the same on all ranks; own mean loss."""
    optimizer.zero_grad()
    # Targets come from the whole text: that of a chunk's last token is elsewhere.
    loss = next_byte_loss(model(cut.take(inputs)), cut.take(targets))
    loss.backward()
    cp.average_gradients(model, cut)
    optimizer.step()
    return loss.detach()


def whole_scores(model: ByteGPT, cut: Cut, inputs: Tensor) -> Tensor:
    """The scores of all tokens on all ranks: [B, T] -> [B, T, 256]."""
    return cp.whole_scores(model(cut.take(inputs)), cut)


def parse_arguments() -> Config:
    def add_options(parser: argparse.ArgumentParser) -> None:
        early_and_late = "give each rank an early and a late chunk of every sequence"
        parser.add_argument("--zigzag", action="store_true", help=early_and_late)
        at_once = "gather all keys and values instead of passing them round"
        parser.add_argument("--gather", action="store_true", help=at_once)

    return gpt_training.parse_text_training(__doc__, Config, add_options)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    refuse_messages_between_shared(device)
    batches = gpt_training.Batches(config, device)
    model, optimizer, cut = build(config, device)
    progress = gpt_training.Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = batches.of_step(step)
        loss = train_step(model, optimizer, cut, inputs, targets)
        progress.note(step, loss / cut.ranks)
    # Every rank must call this: each has the scores of its own tokens only.
    progress.report(batches.test_loss(partial(whole_scores, model, cut)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
