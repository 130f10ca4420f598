"""What 12_model_parallel.py needs beside the method: options, devices, tables, numbers.

The formulas of the tables are for the network of the digits, cut between two of its
layers and trained by SGD with momentum, in numbers of 4 bytes.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from common.accounting import (
    compare,
)
from common.data import write_metrics
from common.distributed import (
    BadInput,
    Parser,
    check_output_file,
    count_accelerators,
    is_rank_0,
    log,
    positive_float,
    positive_int,
    prepare_spawn,
    world_size,
)

FLOAT32, INT64 = 4, 8  # bytes
IMAGE = torch.Size([1, 8, 8])


# [start formulas]
def layer_parameters(layer: nn.Module) -> int:
    """Numbers in the weight and the bias of a layer, from its sizes."""
    if isinstance(layer, nn.Conv2d):
        height, width = layer.kernel_size
        return layer.out_channels * (layer.in_channels * height * width + 1)
    if isinstance(layer, nn.Linear):
        return layer.out_features * (layer.in_features + 1)
    return 0


def numbers_between(model: nn.Sequential) -> list[int]:
    """Numbers for one image before the first layer, after it, ... after the last."""
    x = torch.empty(1, *IMAGE, device="meta")  # shapes only, nothing is computed
    counts = [x.numel()]
    for layer in copy.deepcopy(model).to("meta"):
        x = layer(x)
        counts.append(x.numel())
    return counts


def saved_bytes(model: nn.Sequential, start: int, stop: int) -> int:
    """Bytes that layers ``start`` to ``stop`` save for backward, for one image.

    A convolution, a pooling and a linear layer save what comes in, a ReLU what goes
    out; the pooling also the place of each maximum. What two layers save counts once.
    """
    between = numbers_between(model)
    saved, places = set(), 0
    for index in range(start, stop):
        if isinstance(model[index], nn.ReLU):
            saved.add(index + 1)
        elif isinstance(model[index], (nn.Conv2d, nn.MaxPool2d, nn.Linear)):
            saved.add(index)
        if isinstance(model[index], nn.MaxPool2d):
            places += between[index + 1]
    return FLOAT32 * sum(between[index] for index in saved) + INT64 * places


def formulas(model: nn.Sequential, part: int, args: argparse.Namespace) -> dict:
    """What the device with part 0 or 1 holds and sends in a step."""
    start, stop = [(0, args.cut), (args.cut, len(model))][part]
    numbers = sum(layer_parameters(layer) for layer in model[start:stop])
    activations = args.batch_size * saved_bytes(model, start, stop)
    if part == 1:  # the loss: logarithms of 10 chances, the label; one total weight
        activations += args.batch_size * (10 * FLOAT32 + INT64)
        activations += args.micro_batches * FLOAT32
    return {
        "parameters": FLOAT32 * numbers,
        "gradients": FLOAT32 * numbers,
        "optimizer state": FLOAT32 * numbers,
        "activations": activations,
        "sent in a step": FLOAT32 * args.batch_size * numbers_between(model)[args.cut],
    }


# [end formulas]
def print_tables(
    counted: dict[str, int], model: nn.Sequential, args: argparse.Namespace
) -> None:
    """Rank 0 prints a table for each device: counted there, and by the formulas."""
    everyone: list = [None] * dist.get_world_size() if is_rank_0() else None
    dist.gather_object(counted, everyone, dst=0)  # every rank
    for part, measured in enumerate(everyone or []):
        log(compare(measured, formulas(model, part, args), f"bytes on device {part}"))


def shape_at_cut(
    model: nn.Sequential, cut: int, image: torch.Size = IMAGE
) -> torch.Size:
    """The shape of what passes the cut for one image."""
    x = torch.empty(1, *image, device="meta")
    first = copy.deepcopy(model[:cut]).to("meta").float()
    return first(x).shape[1:]


def parse_arguments(description: str | None, cuts: int) -> argparse.Namespace:
    """The command line; the network can be cut after layer 1 to ``cuts``."""
    parser = Parser(description)
    add = parser.add_argument
    add("total_epochs", metavar="EPOCHS", type=positive_int, help="epochs to train")
    number, shown = {"type": positive_int}, " (default: %(default)s)"
    first = "layers of the first part, of " + str(cuts + 1) + shown
    add("--cut", metavar="LAYERS", **number, default=5, help=first)
    parts = "parts of a batch, one after the other" + shown
    add("--micro-batches", metavar="M", **number, default=1, help=parts)
    images = "images per step, of each replica" + shown
    add("--batch-size", **number, default=32, help=images)
    rate = "of SGD with momentum 0.9" + shown
    add("--learning-rate", type=positive_float, default=0.05, help=rate)
    add(
        "--devices",
        nargs=2,
        metavar=("A", "B"),
        help="one process with its parts on these, such as cuda:0 cuda:1",
    )
    add(
        "--replicas",
        metavar="N",
        type=positive_int,
        help="train N such models as one by DDP, each in one process",
    )
    add("--metrics", metavar="FILE", type=Path, help="write the final numbers as JSON")
    args = parser.parse_args()
    check_arguments(args, cuts)
    return args


def check_arguments(args: argparse.Namespace, cuts: int) -> None:
    """Refuse what cannot be done, before anything is started.

    Raises:
        BadInput: says what, and what to choose instead.
    """
    if args.cut > cuts:
        raise BadInput(
            f"--cut {args.cut} leaves nothing for the second part: choose 1 to {cuts}"
        )
    parts = len(torch.empty(args.batch_size).chunk(args.micro_batches))
    if parts != args.micro_batches:
        raise BadInput(
            f"--micro-batches {args.micro_batches} of --batch-size {args.batch_size} "
            f"would be {parts} micro-batches: choose {parts}"
        )
    if args.replicas and args.devices:
        raise BadInput(
            "--devices is for one model: leave it out, each replica takes two devices"
        )
    if args.metrics:
        check_output_file(args.metrics, "--metrics")


def needs_two_processes(args: argparse.Namespace) -> bool:
    """Whether this machine has not two devices that one process could use."""
    return not args.devices and count_accelerators() < 2


def choose_devices(args: argparse.Namespace) -> list[torch.device]:
    """The two devices of a process that holds both parts.

    Raises:
        BadInput: one of ``--devices`` is not there.
    """
    if not args.devices:
        return accelerators(0, 1)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # the layers are small; see devices.py
    try:
        devices = [torch.device(name) for name in args.devices]
        for device in devices:
            torch.zeros(1, device=device).item()  # nothing tells before it is used
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise BadInput(
            f"--devices {' '.join(args.devices)}: this machine has not both of them "
            "(cpu cpu is always there)"
        ) from error
    return devices


def accelerators(*numbers: int) -> list[torch.device]:
    """The accelerators of these numbers."""
    kind = torch.accelerator.current_accelerator()
    assert kind is not None  # count_accelerators() has found some
    return [torch.device(kind.type, number) for number in numbers]


def choose_devices_of_replica(rank: int, replicas: int) -> list[torch.device]:
    """Two accelerators for each replica if there are so many, else the CPU, twice."""
    if count_accelerators() >= 2 * replicas:
        return accelerators(2 * rank, 2 * rank + 1)
    return [torch.device("cpu"), torch.device("cpu")]


def start_ranks(run_rank: Callable, args: argparse.Namespace) -> None:
    """Start the processes of the two parts or of the replicas, and wait for them.

    Raises:
        BadInput: a launcher has started this program several times.
    """
    nprocs = prepare_spawn(args.replicas or 2)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    mp.spawn(run_rank, args=(nprocs, args), nprocs=nprocs)


def report(losses, rates, correct: int, total: int, args: argparse.Namespace) -> None:
    """Print the numbers of the run, and write them where ``--metrics`` says."""
    means = [float(loss) for loss in losses]
    # the median: the first epoch also pays for what starts lazily
    samples_per_s = statistics.median(rates) * (args.replicas or 1)
    log(f"Loss {means[0]:.4f} -> {means[-1]:.4f} | {samples_per_s:,.0f} samples/s")
    log(f"Test accuracy {correct / total:.2%} ({correct} of {total})")
    if args.metrics and is_rank_0():
        write_metrics(
            args.metrics,
            loss=means[-1],
            accuracy=correct / total,
            correct=correct,
            total=total,
            samples_per_s=samples_per_s,
            world_size=world_size(),
            epochs=args.total_epochs,
        )
