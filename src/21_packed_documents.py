"""Train a byte GPT on documents that share sequences, which are cut over ranks.

    python src/21_packed_documents.py 300
    torchrun --standalone --nproc-per-node=4 src/21_packed_documents.py 300 --zigzag

A document ends with an empty line here, so a sequence holds several short ones. None
attends to another one, each counts its positions from 0, and no document has to predict
the first byte of the next one. The losses are the same on any number of ranks, up to
rounding; twice the ranks must divide --context.
"""

import argparse
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from common import gpt_training
from common.byte_gpt import ByteGPT
from common.distributed import log, one_line_errors
from common.parallel import context_parallel as cp
from common.parallel.packed_documents import Packing, number_documents
from common.process_group import join_or_alone, refuse_messages_between_shared

ALONE = "it has all of every sequence, and passes nothing round"
NEW_LINE = 10  # the byte


@dataclass(frozen=True)
class Config(gpt_training.TextConfig):
    """The command line; the same on all ranks."""

    zigzag: bool  # an early and a late chunk of every sequence for each rank


def build(
    config: Config, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer, Packing]:
    """The model, for own tokens; its optimizer; what it knows of documents."""
    model = gpt_training.make_gpt(config, device)
    packing = Packing(cp.whole_world(config.zigzag))
    packing.pack_gpt(model)
    optimizer = gpt_training.make_optimizer(model.parameters(), config.learning_rate)
    return model, optimizer, packing


def ends_of(inputs: Tensor) -> Tensor:
    """Where a document ends, with the second of two new lines: [B, T] -> [B, T]."""
    new_line = inputs == NEW_LINE
    before = new_line.roll(1, dims=1)
    before[:, 0] = False  # no byte is before the first one
    return new_line & before


def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    packing: Packing,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """One step: inputs and targets [B, T], the same on all ranks; the rank's share."""
    optimizer.zero_grad()
    packing.next_batch(ends_of(inputs))
    scores = model(packing.cut.take(inputs))
    loss = packing.loss(scores, packing.cut.take(targets))
    loss.backward()
    cp.average_gradients(model, packing.cut)
    optimizer.step()
    return loss.detach()


def parse_arguments() -> Config:
    def add_zigzag(parser: argparse.ArgumentParser) -> None:
        early_and_late = "give each rank an early and a late chunk of every sequence"
        parser.add_argument("--zigzag", action="store_true", help=early_and_late)

    return gpt_training.parse_text_training(__doc__, Config, add_zigzag)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    refuse_messages_between_shared(device)
    batches = gpt_training.Batches(config, device)
    model, optimizer, packing = build(config, device)
    first, _ = batches.of_step(0)
    documents = number_documents(ends_of(first))[:, -1] + 1
    counted = f"{documents.sum()} documents, at most {documents.max()} in one"
    log(f"The {len(first)} sequences of step 0 hold {counted}")
    progress = gpt_training.Progress(config, batches.entropy)
    for step in progress.steps():
        loss = train_step(model, optimizer, packing, *batches.of_step(step))
        progress.note(step, loss / packing.cut.ranks)
    progress.report()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
