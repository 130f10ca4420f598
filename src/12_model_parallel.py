"""Train a network with its first layers on one device and the rest on another.

    python src/12_model_parallel.py 10                    # two GPUs, or the CPU twice
    python src/12_model_parallel.py 10 --micro-batches 4  # the two work side by side
    python src/12_model_parallel.py 10 --devices cpu cpu  # one process, as for two GPUs
    python src/12_model_parallel.py 10 --replicas 2       # DDP over two such models

One process holds both parts. In 12_two_processes.py each part has its own.
"""

import argparse
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from common.data import count_correct, load_digits_split, make_model
from common.distributed import (
    BadInput,
    count_accelerators,
    log,
    one_line_errors,
    positive_int,
)
from common.parallel.model_parallel import (
    SEED,
    TwoPartsConfig,
    make_loader,
    make_optimizer,
    parse_model_parallel,
    report,
    start_ranks,
    train,
)
from common.process_group import join_on


@dataclass(frozen=True)
class Config(TwoPartsConfig):
    """The command line; the same for every replica."""

    devices: list[str] | None  # of the two parts; None: what this machine has
    replicas: int | None  # models that DDP trains as one; None: one, without DDP


# [start one process]
class TwoDevices(nn.Module):
    """Two parts of a network in one process: images [B, 1, 8, 8] to scores [B, 10]."""

    def __init__(self, model: nn.Sequential, cut: int, devices: list[torch.device]):
        super().__init__()
        self.devices = devices
        self.first = model[:cut].to(devices[0])
        self.second = model[cut:].to(devices[1])
        self.micro_batches = 1

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores = []
        for part in images.chunk(self.micro_batches):
            hidden = self.first(part.to(self.devices[0]))
            # copy the activations over; backward copies their gradient the other way
            scores.append(self.second(hidden.to(self.devices[1])))
        return torch.cat(scores)


# [end one process]
def accelerators(*indices: int) -> list[torch.device]:
    """The accelerators with these indices."""
    kind = torch.accelerator.current_accelerator()
    assert kind is not None  # count_accelerators() has found some
    return [torch.device(kind.type, index) for index in indices]


def choose_devices(config: Config, rank: int = 0) -> list[torch.device]:
    """The two devices of a process: accelerators 2r and 2r + 1, or the CPU twice.

    Raises:
        BadInput: this machine doesn't have one of ``--devices``.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # the layers are small
    if not config.devices:
        if count_accelerators() >= 2 * (config.replicas or 1):
            return accelerators(2 * rank, 2 * rank + 1)
        return [torch.device("cpu"), torch.device("cpu")]
    try:
        devices = [torch.device(name) for name in config.devices]
        for device in devices:
            torch.zeros(1, device=device).item()  # only use tells whether it is there
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise BadInput(
            f"--devices {' '.join(config.devices)}: this machine does not have both "
            "(cpu cpu is always there)"
        ) from error
    return devices


def train_in_one_process(config: Config, devices: list[torch.device]) -> None:
    """One process for the whole model: alone, or as one replica of several."""
    torch.manual_seed(SEED)
    train_set, test_set = load_digits_split()
    model = TwoDevices(make_model(), config.cut, devices)
    model.micro_batches = config.micro_batches
    # [start replicas]
    # every replica must reach this line; the model has several devices: pass none
    parallel_model = DDP(model, device_ids=None) if config.replicas else model
    # [end replicas]

    def run_batch(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        scores = parallel_model(images)
        loss = F.cross_entropy(scores, labels.to(scores.device))
        loss.backward()
        return loss.detach()

    loader = make_loader(train_set, config.batch_size, config.replicas)
    optimizer = make_optimizer(model, config.learning_rate)
    losses, rates = train(run_batch, optimizer, loader, config.total_epochs)
    if config.replicas:
        for loss in losses:
            # every replica: the sum over the replicas, 4 bytes
            dist.all_reduce(loss)
            loss /= config.replicas  # ReduceOp.AVG takes NCCL, or PyTorch 2.8
    speeds = [rate * (config.replicas or 1) for rate in rates]
    report(losses, speeds, *count_correct(model, test_set, devices[1]), config)


@one_line_errors
def run_replica(rank: int, replicas: int, config: Config) -> None:
    """Train one replica of the model, in its own process."""
    devices = choose_devices(config, rank)
    if devices[0].type != "cpu":  # what names no device goes to this one
        torch.accelerator.set_device_index(devices[0].index)
    # every replica must reach this line; DDP sends from both devices
    join_on(devices[0], rank=rank, world_size=replicas, bound=False)
    log(f"{replicas} replicas, each in one process on {devices[0]}, {devices[1]}")
    train_in_one_process(config, devices)
    dist.destroy_process_group()


def parse_arguments() -> Config:
    def add_options(parser: argparse.ArgumentParser) -> None:
        names = "one process with its parts on these, such as cuda:0 cuda:1"
        parser.add_argument("--devices", nargs=2, metavar=("A", "B"), help=names)
        several = "train N such models as one by DDP, each in one process"
        parser.add_argument("--replicas", metavar="N", type=positive_int, help=several)

    return parse_model_parallel(__doc__, Config, add_options)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    if config.replicas and config.devices:
        raise BadInput(
            "--devices is for one model: leave it out, each replica takes two devices"
        )
    if config.replicas:
        start_ranks(run_replica, config.replicas, config)
        return
    devices = choose_devices(config)
    log(
        f"Cut after layer {config.cut}: one process, devices {devices[0]}, {devices[1]}"
    )
    train_in_one_process(config, devices)


if __name__ == "__main__":
    main()
