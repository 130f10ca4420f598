"""What the programs that train a byte GPT share: command line, batches, final numbers.

They differ in how the model is spread over the ranks.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import torch
import torch.distributed as dist
from torch import nn

from common.byte_gpt import ByteGPT, Sizes, next_byte_loss
from common.distributed import (
    BadInput,
    Parser,
    check_output_file,
    is_rank_0,
    log,
    positive_float,
    positive_int,
    speaks_first,
)
from common.text import batch_of_step, load_text, unigram_entropy

SEED = 0
SAY_EVERY = 50  # steps


def parse_text_training(
    description: str | None,
    *add_options: Callable[[argparse.ArgumentParser], None],
) -> argparse.Namespace:
    """The command line of a training; each of ``add_options`` adds its own."""
    parser = Parser(description)
    add = parser.add_argument
    add("steps", metavar="STEPS", type=positive_int, help="steps to train in all")
    add(
        "--batch-size",
        type=positive_int,
        default=16,
        help="pieces of text in a step, of all ranks together (default: %(default)s)",
    )
    add(
        "--learning-rate",
        type=positive_float,
        default=3e-3,
        help="step size of AdamW (default: %(default)s)",
    )
    for name, value in vars(Sizes()).items():
        words = {
            "width": "numbers that stand for a byte inside the model",
            "heads": "heads of each attention",
            "blocks": "attention blocks, one after the other",
            "context": "bytes in a piece of text",
        }
        add(
            f"--{name}",
            type=positive_int,
            default=value,
            help=f"{words[name]} (default: %(default)s)",
        )
    add("--metrics", metavar="FILE", type=Path, help="write the final numbers as JSON")
    for add_more in add_options:
        add_more(parser)
    args = parser.parse_args()
    if args.metrics and speaks_first():
        check_output_file(args.metrics, "--metrics")
    return args


def sizes_of(args: argparse.Namespace) -> Sizes:
    """The sizes of the model that the command line asks for."""
    return Sizes(args.width, args.heads, args.blocks, args.context)


def make_gpt(args: argparse.Namespace, device: torch.device) -> ByteGPT:
    """The same model on every rank, from one seed."""
    torch.manual_seed(SEED)
    return ByteGPT(sizes_of(args)).to(device)


def make_optimizer(
    parameters, learning_rate: float, **options
) -> torch.optim.Optimizer:
    """AdamW as all these trainings use it; make it last, from the final parameters."""
    return torch.optim.AdamW(parameters, learning_rate, weight_decay=0.01, **options)


class Text:
    """The text to train on, cut into batches, and the numbers of the training."""

    def __init__(self, args: argparse.Namespace, device: torch.device):
        self.args = args
        self.device = device
        self.train, self.test = load_text()
        if args.context >= len(self.test):
            raise BadInput(
                f"--context {args.context} is more than the {len(self.test):,} bytes "
                "of text to test on: choose less"
            )
        self.entropy = unigram_entropy(self.train)
        self.losses: list[float] = []  # of the steps of this run
        self.seconds: list[float] = []
        log(
            f"{len(self.train):,} bytes of Python's standard library; by their "
            f"frequencies alone {self.entropy:.2f} nats per byte"
        )

    def steps(self, first: int = 0) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """(number, inputs, targets) of each step, [B, T] each, on the device.

        The loop calls :meth:`note` with the loss before it takes the next one.
        """
        for step in range(first, self.args.steps):
            start = time.perf_counter()
            yield step, *self.batch(step)
            self.seconds.append(time.perf_counter() - start)

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(inputs, targets) of the global batch of a step, the same on all ranks."""
        size, context = self.args.batch_size, self.args.context
        inputs, targets = batch_of_step(self.train, step, size, context)
        return inputs.to(self.device), targets.to(self.device)

    def note(self, step: int, loss: float) -> None:
        """Keep the loss of the global batch; now and then print it."""
        self.losses.append(loss)
        if step % SAY_EVERY == 0 or step == self.args.steps - 1:
            log(f"Step {step} | loss {loss:.4f}")

    @torch.no_grad()
    def test_loss(self, score: Callable[[torch.Tensor], torch.Tensor]) -> float:
        """The mean loss over 2,048 pieces' worth of test text; ``score`` is the model.

        The pieces are the same for every model, and whoever calls this has all of
        the model: a scheme whose ranks score together calls it on all of them.
        """
        losses = []
        for number in range(16):
            inputs, targets = batch_of_step(self.test, number, 16, self.args.context)
            scores = score(inputs.to(self.device))
            losses.append(next_byte_loss(scores, targets.to(self.device)).item())
        return statistics.mean(losses)

    def report(self, test_loss: float | None = None) -> None:
        """Print the numbers of the run, and write them where ``--metrics`` says."""
        tokens = self.args.batch_size * self.args.context
        # the median: the first steps also pay for what starts lazily
        speed = tokens / statistics.median(self.seconds) if self.seconds else None
        if self.losses:
            log(
                f"Loss {self.losses[0]:.4f} -> {self.losses[-1]:.4f} | "
                f"{speed:,.0f} bytes/s"
            )
        else:
            log(f"Nothing to train: {self.args.steps} steps are already run")
        if test_loss is not None:
            below = self.entropy - test_loss
            beside = f"{abs(below):.2f} {'below' if below >= 0 else 'above'}"
            log(f"Test loss {test_loss:.4f}: {beside} the frequencies alone")
        if self.args.metrics and is_rank_0():
            write_text_metrics(
                self.args.metrics,
                losses=self.losses,
                test_loss=test_loss,
                unigram_entropy=self.entropy,
                tokens_per_s=speed,
                world_size=dist.get_world_size() if dist.is_initialized() else 1,
            )


def write_text_metrics(path: Path, **numbers) -> None:
    """Write the final numbers of a run as one JSON object; a byte is a token here."""
    try:
        path.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write --metrics {path}: {error.strerror}") from error


def check_divides(whole: int, parts: int, option: str, of_what: str) -> None:
    """Make sure that ``parts`` divide ``whole``, the value of ``option``.

    Raises:
        BadInput: they do not; ``of_what`` says what the parts are.
    """
    if whole % parts:
        near = [math.floor(whole / parts) * parts, math.ceil(whole / parts) * parts]
        choices = " or ".join(str(number) for number in near if number)
        raise BadInput(
            f"{option} {whole} cannot be divided among {parts} {of_what}: "
            f"choose {choices}"
        )


def count_parameters(model: nn.Module) -> int:
    """Numbers in all parameters of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


def local_batch(batch: torch.Tensor) -> torch.Tensor:
    """[B, T] of the global batch -> [B / W, T] of this rank."""
    return batch.chunk(dist.get_world_size())[dist.get_rank()].clone()


def mean_over_ranks(loss: torch.Tensor) -> float:
    """The loss of the global batch, for all ranks have equally many pieces."""
    loss /= dist.get_world_size()
    # Every rank: one number.
    dist.all_reduce(loss)
    return loss.item()


def add_save_options(parser: argparse.ArgumentParser) -> None:
    """The options of a program that saves snapshots and can write a sample."""
    add, number = parser.add_argument, {"type": positive_int}
    every = "steps between two snapshots (default: none is saved)"
    add("--save-every", metavar="STEPS", **number, help=every)
    path = {"type": Path, "default": Path("gpt.pt")}
    saved = "resumed from with --save-every if it is there (default: %(default)s)"
    add("--snapshot", metavar="FILE", **path, help=saved)
    add("--sample", metavar="BYTES", **number, help="write this many at the end")


def run_and_exit(main: Callable[[], object]) -> NoReturn:
    """Run the ``main`` of a script that uses DTensor, and end the process with it.

    DTensor keeps device meshes in caches, and a mesh keeps its process group. So the
    threads of gloo live on after ``destroy_process_group()``; one that still holds a
    tensor when Python clears up aborts the process: "terminate called without an
    active exception" (torch 2.13). Here the system clears up, not Python.
    """
    status = 0
    try:
        main()
    except SystemExit as end:  # from sys.exit(2), or --help: 0 or None
        status = int(end.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
