"""What the programs that train a byte GPT share: options, batches, final numbers."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

import torch
import torch.distributed as dist

from common.byte_gpt import (
    ByteGPT,
    Sizes,
    batch_of_step,
    load_text,
    next_byte_loss,
    sizes_of,
    unigram_entropy,
)
from common.distributed import (
    BadInput,
    Parser,
    describe_world,
    log,
    output_file,
    positive_float,
    positive_int,
    world_size,
    write_json,
)

SEED = 0
SAY_EVERY = 50  # steps between two log lines
TEST_BATCHES, TEST_BATCH_SIZE = 16, 16


@dataclass(frozen=True)
class TextConfig:
    """The command line of a training run, the same on all ranks; no step changes it.

    A program with more options derives its own from this one, and names it last: the
    fields of all programs then come first.
    """

    steps: int  # of all runs together
    batch_size: int  # pieces of text in a step, of all ranks together
    learning_rate: float  # of AdamW
    width: int  # numbers that stand for a byte inside the model
    heads: int  # of each attention
    blocks: int
    context: int  # bytes in a piece of text
    metrics: Path | None  # file for the final numbers


@dataclass(frozen=True)
class SaveOptions:
    """What :func:`add_save_options` asks for."""

    save_every: int | None  # steps; None saves nothing
    snapshot: Path


Config = TypeVar("Config", bound=TextConfig)


def parse_text_training(
    description: str | None,
    config: type[Config],
    *add_options: Callable[[argparse.ArgumentParser], None],
) -> Config:
    """The command line, as a ``config``; each of ``add_options`` adds its own."""
    parser = Parser(description)
    add, shown = parser.add_argument, " (default: %(default)s)"
    add("steps", metavar="STEPS", type=positive_int, help="steps to train in all")
    size = "pieces of text in a step, of all ranks together" + shown
    add("--batch-size", type=positive_int, default=16, help=size)
    rate = "step size of AdamW" + shown
    add("--learning-rate", type=positive_float, default=3e-3, help=rate)
    words = {
        "width": "numbers that stand for a byte inside the model",
        "heads": "heads of each attention",
        "blocks": "attention blocks, one after the other",
        "context": "bytes in a piece of text",
    }
    for name, value in vars(Sizes()).items():
        add(f"--{name}", type=positive_int, default=value, help=words[name] + shown)
    write = "write the final numbers as JSON"
    add("--metrics", metavar="FILE", type=output_file, help=write)
    for add_more in add_options:
        add_more(parser)
    return config(**vars(parser.parse_args()))


def show_config(config: TextConfig) -> None:
    """Print the configuration, once and on rank 0, without options that are off."""
    told = {
        name: value
        for name, value in vars(config).items()
        if value is not None and value is not False
    }
    log("Config: " + ", ".join(f"{name} {value}" for name, value in told.items()))


def make_gpt(config: TextConfig, device: torch.device) -> ByteGPT:
    """The same model on every rank, from one seed; on ``meta`` if that is set."""
    torch.manual_seed(SEED)
    model = ByteGPT(sizes_of(config))
    numel = sum(parameter.numel() for parameter in model.parameters())
    log(f"{numel:,} parameters on {describe_world(device)}")
    return model if next(model.parameters()).is_meta else model.to(device)


def make_optimizer(
    parameters, learning_rate: float, foreach: bool | None = None
) -> torch.optim.Optimizer:
    """AdamW as all these programs use it; make it last, from the final parameters.

    ``foreach``: one kernel for many parameters; None lets PyTorch choose it on a GPU.
    """
    return torch.optim.AdamW(
        parameters, learning_rate, weight_decay=0.01, foreach=foreach
    )


class Batches:
    """The text of the standard library, and which pieces of it each step trains on.

    Raises:
        BadInput: a piece of ``--context`` bytes is longer than the text to test on.
    """

    def __init__(self, config: TextConfig, device: torch.device):
        self.batch_size, self.context = config.batch_size, config.context
        self.device = device
        self.train, self.test = load_text()
        if config.context >= len(self.test):
            most = f"the {len(self.test):,} bytes of text to test on"
            asked = f"--context {config.context}"
            raise BadInput(f"{asked} is more than {most}: choose less")
        self.entropy = unigram_entropy(self.train)  # nats per byte
        alone = f"by their frequencies alone {self.entropy:.2f} nats per byte"
        log(f"{len(self.train):,} bytes of Python's standard library; {alone}")

    def of_step(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(inputs, targets) [B, T] of the global batch, the same on all ranks."""
        batch = batch_of_step(self.train, step, self.batch_size, self.context)
        return self._on_device(batch)

    @torch.no_grad()
    def test_loss(self, score: Callable[[torch.Tensor], torch.Tensor]) -> float:
        """The mean loss over batches of test text; ``score`` is the model.

        The batches are the same for every model. Ranks that score together all call it.
        """
        losses = []
        for number in range(TEST_BATCHES):
            batch = batch_of_step(self.test, number, TEST_BATCH_SIZE, self.context)
            inputs, targets = self._on_device(batch)
            losses.append(next_byte_loss(score(inputs), targets).item())
        return statistics.mean(losses)

    def _on_device(
        self, batch: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, targets = batch
        return inputs.to(self.device), targets.to(self.device)


class Progress:
    """What a run has shown so far: its losses and its speed, and when they are said."""

    def __init__(self, config: TextConfig, entropy: float, say_every: int = SAY_EVERY):
        self.last_step = config.steps - 1
        self.bytes_per_step = config.batch_size * config.context
        self.metrics_file = config.metrics
        self.entropy = entropy  # what the test loss is compared with
        self.say_every = say_every  # steps between two log lines
        self.losses: list[float] = []  # of the steps of this run
        self.shares: list[torch.Tensor] = []  # of the last steps, not yet added up
        self.seconds: list[float] = []  # of a step, the mean between two log lines
        self.since = 0.0  # when the last line was printed

    def steps(self, first: int = 0) -> Iterator[int]:
        """The number of each step from ``first`` on; the loop calls :meth:`note`."""
        self.since = time.perf_counter()
        yield from range(first, self.last_step + 1)

    def note(self, step: int, share: torch.Tensor) -> None:
        """Keep this rank's share of a loss, and now and then print the sum; all ranks.

        The shares [] of all ranks add up to the loss of the global batch: for many
        steps at once, so that no step waits for the device or for other ranks.
        """
        self.shares.append(share)
        if step % self.say_every == 0 or step == self.last_step:
            self._say(step)

    def _say(self, step: int) -> None:
        self.losses += _sum_over_ranks(self.shares)
        log(f"Step {step} | loss {self.losses[-1]:.4f}")
        now = time.perf_counter()
        self.seconds.append((now - self.since) / len(self.shares))
        self.since, self.shares = now, []

    def report(self, test_loss: float | None = None) -> None:
        """Print the numbers of the run, and write them where ``--metrics`` says."""
        speed = None
        if self.losses:
            # the median: the first steps also pay for what starts lazily
            speed = self.bytes_per_step / statistics.median(self.seconds)
            change = f"Loss {self.losses[0]:.4f} -> {self.losses[-1]:.4f}"
            log(f"{change} | {speed:,.0f} bytes/s")
        else:
            log(f"Nothing to train: {self.last_step + 1} steps are already run")
        if test_loss is not None:
            log(f"Test loss {test_loss:.4f}: {self._beside_entropy(test_loss)}")
        metrics = {
            "losses": self.losses,
            "test_loss": test_loss,
            "unigram_entropy": self.entropy,
            "world_size": world_size(),
            "tokens_per_s": speed,  # a byte is a token here
        }
        write_json(self.metrics_file, metrics)

    def _beside_entropy(self, test_loss: float) -> str:
        below = self.entropy - test_loss
        side = "below" if below >= 0 else "above"
        return f"{abs(below):.2f} {side} the frequencies alone"


def check_divides(whole: int, parts: int, option: str, of_what: str) -> None:
    """Make sure that ``parts`` divide ``whole``, the value of ``option``.

    Raises:
        BadInput: they do not; ``of_what`` says what the parts are.
    """
    if whole % parts:
        below = whole // parts * parts
        choices = f"{below} or {below + parts}" if below else f"{parts}"
        divided = f"cannot be divided among {parts} {of_what}"
        raise BadInput(f"{option} {whole} {divided}: choose {choices}")


def local_batch(batch: torch.Tensor) -> torch.Tensor:
    """[B, T] of the global batch -> [B / N, T] of this rank; N must divide B."""
    check_divides(len(batch), dist.get_world_size(), "--batch-size", "ranks")
    return batch.chunk(dist.get_world_size())[dist.get_rank()].clone()


def _sum_over_ranks(shares: list[torch.Tensor]) -> list[float]:
    """N numbers, [] each -> their sums over the ranks; waits for the device."""
    sums = torch.stack(shares)
    if dist.is_initialized():
        dist.all_reduce(sums)  # every rank must reach this line; [N] -> [N]
    return sums.tolist()


def add_save_options(parser: argparse.ArgumentParser) -> None:
    """The options of a program that saves snapshots."""
    add, own = parser.add_argument, Path(Path(parser.prog).stem + ".pt")
    every = "steps between two snapshots (default: none is saved)"
    add("--save-every", metavar="STEPS", type=positive_int, help=every)
    saved = "resumed from with --save-every if it is there (default: %(default)s)"
    add("--snapshot", metavar="FILE", type=Path, default=own, help=saved)


def claim_snapshot(path: Path) -> None:
    """Before a long run, refuse a file that can't be written or is another run's."""
    output_file(str(path))
    try:
        # not closed: that would end the claim; data workers do not inherit it
        os.lockf(os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT), os.F_TLOCK, 0)
    except BlockingIOError as error:
        cure = "end that one, or choose another --snapshot"
        raise BadInput(f"another run is saving to {path}: {cure}") from error
    except OSError:
        pass  # a file system without locks


def run_and_exit(main: Callable[[], object]) -> NoReturn:
    """Run the ``main`` of a program that uses DTensor, and end the process with it.

    DTensor caches device meshes, and with them process groups. So gloo's threads
    survive ``destroy_process_group()``; one that still holds a tensor when Python
    finalizes aborts the process (torch 2.13). Here the system frees everything.
    """
    status = 0
    try:
        main()
    except SystemExit as end:  # from sys.exit(2), or --help: 0 or None
        status = int(end.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
