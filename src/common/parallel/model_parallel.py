"""What the programs of lesson 12 share: command line, ranks, loop, final numbers."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from common.data import make_model
from common.distributed import (
    BadInput,
    Parser,
    log,
    output_file,
    positive_float,
    positive_int,
    prepare_spawn,
    world_size,
    write_json,
)

SEED = 0


@dataclass(frozen=True)
class TwoPartsConfig:
    """The part of the command line that both programs have."""

    total_epochs: int
    cut: int  # layers of the first part
    micro_batches: int  # parts of a batch, one after the other
    batch_size: int  # images per step, of each replica
    learning_rate: float
    metrics: Path | None  # a JSON file for the final numbers


Config = TypeVar("Config", bound=TwoPartsConfig)


def parse_model_parallel(
    description: str | None,
    config: type[Config],
    *add_options: Callable[[argparse.ArgumentParser], None],
) -> Config:
    """The command line, as a ``config``; each of ``add_options`` adds its own.

    Raises:
        BadInput: the network or a batch can't be cut so.
    """
    parser = Parser(description)
    add, cuts = parser.add_argument, len(make_model()) - 1
    number, shown = {"type": positive_int}, " (default: %(default)s)"
    add("total_epochs", metavar="EPOCHS", **number, help="epochs to train")
    first = f"layers of the first part, of {cuts + 1}" + shown
    add("--cut", metavar="LAYERS", **number, default=5, help=first)
    parts = "parts of a batch, one after the other" + shown
    add("--micro-batches", metavar="M", **number, default=1, help=parts)
    images = "images per step, of each replica" + shown
    add("--batch-size", **number, default=32, help=images)
    rate = "of SGD with momentum 0.9" + shown
    add("--learning-rate", type=positive_float, default=0.05, help=rate)
    write = "write the final numbers as JSON"
    add("--metrics", metavar="FILE", type=output_file, help=write)
    for add_more in add_options:
        add_more(parser)
    found = config(**vars(parser.parse_args()))
    check_cuts(found, cuts)
    return found


def check_cuts(config: TwoPartsConfig, cuts: int) -> None:
    """Refuse what cannot be done, before anything is started.

    Raises:
        BadInput: says what, and what to choose instead.
    """
    if config.cut > cuts:
        raise BadInput(
            f"--cut {config.cut} leaves nothing for the second part: choose 1 to {cuts}"
        )
    parts = len(torch.empty(config.batch_size).chunk(config.micro_batches))
    if parts != config.micro_batches:
        batch = f"--batch-size {config.batch_size}"
        raise BadInput(
            f"--micro-batches {config.micro_batches} of {batch} "
            f"would be {parts} micro-batches: choose {parts}"
        )


def start_ranks(run_rank: Callable, nprocs: int, *arguments: object) -> None:
    """Call ``run_rank(rank, nprocs, *arguments)`` in that many processes, and wait.

    Raises:
        BadInput: a launcher has started this program several times.
    """
    nprocs = prepare_spawn(nprocs)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    mp.spawn(run_rank, args=(nprocs, *arguments), nprocs=nprocs)


def make_loader(
    dataset: Dataset, batch_size: int, replicas: int | None = None
) -> DataLoader:
    """Batches in an order that is new in every epoch.

    Two ranks that hold one model draw the same batches, because both shuffle with the
    same seed: one uses the images, the other the labels. Replicas share them out.
    """
    sampler = DistributedSampler(dataset, seed=SEED) if replicas else None
    return DataLoader(
        dataset,
        batch_size,
        shuffle=sampler is None,
        sampler=sampler,
        generator=torch.Generator().manual_seed(SEED),
    )


def make_optimizer(layers: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """An optimizer for these layers only: each rank has one for its own."""
    return torch.optim.SGD(layers.parameters(), learning_rate, momentum=0.9)


def train(run_batch, optimizer, loader: DataLoader, epochs: int) -> tuple[list, list]:
    """The mean loss of each epoch on the rank that has it, and images per second."""
    losses, rates = [], []
    for epoch in range(epochs):
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(epoch)
        log(f"Epoch {epoch} | Batch size {loader.batch_size} | Steps {len(loader)}")
        start, done, loss_sum = time.perf_counter(), 0, 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss_sum += run_batch(images, labels) * len(labels)
            optimizer.step()
            done += len(labels)
        _wait_for_devices(optimizer)  # else the clock would stop too early
        losses.append(loss_sum / done)
        rates.append(done / (time.perf_counter() - start))
    return losses, rates


def _wait_for_devices(optimizer: torch.optim.Optimizer) -> None:
    """Wait until everything queued on the devices of its parameters is done."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for device in {parameter.device for parameter in parameters}:
        if device.type != "cpu":
            torch.accelerator.synchronize(device)


def report(
    losses: list,
    samples_per_s: list[float],
    correct: int,
    total: int,
    config: TwoPartsConfig,
) -> None:
    """Print the numbers of the run, and write them where ``--metrics`` says."""
    means = [float(loss) for loss in losses]
    # the median: the first epoch also pays for what starts lazily
    speed = statistics.median(samples_per_s)
    log(f"Loss {means[0]:.4f} -> {means[-1]:.4f} | {speed:,.0f} samples/s")
    log(f"Test accuracy {correct / total:.2%} ({correct} of {total})")
    metrics = {
        "loss": means[-1],
        "accuracy": correct / total,
        "correct": correct,
        "total": total,
        "samples_per_s": speed,
        "world_size": world_size(),
        "epochs": config.total_epochs,
    }
    write_json(config.metrics, metrics)
