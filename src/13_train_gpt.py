"""Train a byte GPT on one device: the model that lessons 13 to 16 spread over ranks.

Run from the folder of the workshop:

    python src/13_train_gpt.py 300                          # 300 steps, then a sample
    python src/13_train_gpt.py 300 --save-every 100         # in 13_train_gpt.pt
    python src/13_train_gpt.py 600 --save-every 100         # 300 more: resumes from it
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import (
    BadInput,
    choose_device,
    log,
    one_line_errors,
    positive_int,
)
from common.gpt_training import (
    Batches,
    Progress,
    SaveOptions,
    TextConfig,
    add_save_options,
    claim_snapshot,
    make_gpt,
    make_optimizer,
    parse_text_training,
    show_config,
)
from common.snapshot import read_snapshot, resuming, save_or_continue


@dataclass(frozen=True)
class Config(SaveOptions, TextConfig):
    """The command line."""

    sample: int | None  # bytes to write at the end


def build(
    config: Config, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer]:
    """The model and its optimizer."""
    model = make_gpt(config, device)
    return model, make_optimizer(model.parameters(), config.learning_rate)


# [start step]
def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    """One step: inputs and targets [B, T]; the mean loss of the batch."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.detach()  # .item() would wait for the device


# [end step]
def save_snapshot(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    steps_run: int,
    path: Path,
) -> str:
    """Everything the next step depends on; its batch depends on its number only."""
    snapshot = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "steps_run": steps_run,
    }
    return save_or_continue(snapshot, path)


def load_snapshot(model: ByteGPT, optimizer: torch.optim.Optimizer, path: Path) -> int:
    """Continue as if the run that saved it had never stopped; returns its steps."""
    snapshot = read_snapshot(path)
    with resuming(path, snapshot):
        model.load_state_dict(snapshot["model"])
        optimizer.load_state_dict(snapshot["optimizer"])
        steps_run = snapshot["steps_run"]
    return steps_run


@torch.no_grad()
def write_on(
    model: nn.Module, context: int, start: bytes, count: int, seed: int = 0
) -> bytes:
    """``start`` and ``count`` more bytes, each drawn from the model's predictions."""
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)  # the same draws on any device
    text = list(start)
    for _ in range(count):
        tokens = torch.tensor([text[-context:]], device=device)
        chances = F.softmax(model(tokens)[0, -1].double().cpu() / 0.8, dim=0)
        text.append(int(torch.multinomial(chances, 1, generator=generator)))
    return bytes(text)


def train(config: Config, device: torch.device) -> str:
    """Train and print; returns why the last snapshot is not saved, or ""."""
    show_config(config)
    batches = Batches(config, device)
    model, optimizer = build(config, device)
    steps_run, not_saved = 0, ""
    if config.save_every and config.snapshot.exists():
        steps_run = load_snapshot(model, optimizer, config.snapshot)
    progress = Progress(config, batches.entropy)
    for step in progress.steps(steps_run):
        inputs, targets = batches.of_step(step)
        progress.note(step, train_step(model, optimizer, inputs, targets))
        if config.save_every and (step + 1) % config.save_every == 0:
            not_saved = save_snapshot(model, optimizer, step + 1, config.snapshot)
    progress.report(batches.test_loss(model))
    if config.sample:
        written = write_on(model, config.context, b"def ", config.sample)
        log("It writes:\n" + written.decode("utf-8", "replace"))
    return not_saved


def parse_arguments() -> Config:
    def add_sample(parser: argparse.ArgumentParser) -> None:
        words = "write this many bytes at the end"
        parser.add_argument("--sample", metavar="N", type=positive_int, help=words)

    config = parse_text_training(__doc__, Config, add_save_options, add_sample)
    if config.save_every:
        claim_snapshot(config.snapshot)
    return config


@one_line_errors
def main() -> None:
    config = parse_arguments()
    not_saved = train(config, choose_device())
    if not_saved:
        raise BadInput(not_saved)


if __name__ == "__main__":
    main()
