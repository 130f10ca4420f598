"""Train a network whose first layers are on one device and whose last on another.

Run from the folder of the workshop:

    python src/12_model_parallel.py 10                    # two GPUs, or two processes
    python src/12_model_parallel.py 10 --micro-batches 4  # the two work side by side
    python src/12_model_parallel.py 10 --devices cpu cpu  # one process, as for two GPUs
    python src/12_model_parallel.py 10 --replicas 2       # DDP over two such models
"""

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from common.accounting import count_step
from common.data import count_correct, load_digits_split, make_model
from common.distributed import choose_backend, log, one_line_errors
from common.model_parallel import (
    choose_devices,
    choose_devices_of_replica,
    needs_two_processes,
    parse_arguments,
    print_tables,
    report,
    shape_at_cut,
    start_ranks,
)

SEED = 0
FIRST, SECOND = 0, 1  # the ranks that hold the two parts


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
            # the activations go to the other device; backward brings the gradient
            scores.append(self.second(hidden.to(self.devices[1])))
        return torch.cat(scores)


# [end one process]
class FirstPart:
    """What the rank with the first layers does: it gets the images."""

    def __init__(self, layers: nn.Module, device: torch.device):
        self.layers = layers.to(device)
        self.device = device

    def run_batch(
        self, images: torch.Tensor, labels: torch.Tensor, micro_batches: int = 1
    ) -> torch.Tensor:
        """Leave the gradients of the batch in these layers; the loss is elsewhere."""
        waiting = []
        for part in images.chunk(micro_batches):
            hidden = self.layers(part.to(self.device))
            # b x S bytes; the other rank must receive them before this one goes on
            dist.send(hidden.detach(), dst=SECOND)
            waiting.append(hidden)  # with the graph that its gradient will go through
        for hidden in waiting:
            gradient = torch.empty_like(hidden)
            # b x S bytes: how the loss changes with each number that was sent
            dist.recv(gradient, src=SECOND)
            hidden.backward(gradient)
        return torch.zeros((), device=self.device)


class SecondPart:
    """What the rank with the last layers does: it gets the labels, and has the loss."""

    def __init__(self, layers: nn.Module, device: torch.device, shape: torch.Size):
        self.layers = layers.to(device)
        self.device = device
        self.shape = shape  # of what arrives for one image

    def receive(self, size: int) -> torch.Tensor:
        """[size, *shape] from the other rank."""
        dtype = next(self.layers.parameters()).dtype
        hidden = torch.empty(size, *self.shape, dtype=dtype, device=self.device)
        dist.recv(hidden, src=FIRST)
        return hidden

    def run_batch(
        self, images: torch.Tensor, labels: torch.Tensor, micro_batches: int = 1
    ) -> torch.Tensor:
        """Leave the gradients of the batch in these layers; its mean loss."""
        waiting = []
        for part in labels.chunk(micro_batches):
            # numbers arrive without a history: here, they are where the graph begins
            hidden = self.receive(len(part)).requires_grad_()
            scores = self.layers(hidden)
            summed = F.cross_entropy(scores, part.to(self.device), reduction="sum")
            loss = summed / len(labels)  # its share of the mean over the batch
            waiting.append((hidden, loss))
        for hidden, loss in waiting:
            loss.backward()
            dist.send(hidden.grad, dst=FIRST)
        return torch.stack([loss.detach() for _, loss in waiting]).sum()


@torch.no_grad()
def count_correct_in_two(part: FirstPart | SecondPart, dataset: Dataset) -> int:
    """How many images the two ranks recognise; both call this, and both get it."""
    correct = torch.zeros((), dtype=torch.int64, device=part.device)
    for images, labels in DataLoader(dataset, batch_size=256):
        if isinstance(part, FirstPart):
            dist.send(part.layers(images.to(part.device)), dst=SECOND)
        else:
            scores = part.layers(part.receive(len(labels)))
            correct += (scores.argmax(dim=1) == labels.to(part.device)).sum()
    dist.broadcast(correct, src=SECOND)  # both ranks: 8 bytes
    return int(correct)


def make_loader(dataset: Dataset, args: argparse.Namespace) -> DataLoader:
    """Batches in an order that is new in every epoch.

    Two ranks that hold one model draw the same batches, because both begin with the
    same generator: one uses the images, the other the labels. Replicas share them out.
    """
    sampler = DistributedSampler(dataset, seed=SEED) if args.replicas else None
    return DataLoader(
        dataset,
        args.batch_size,
        shuffle=sampler is None,
        sampler=sampler,
        generator=torch.Generator().manual_seed(SEED),
    )


def make_optimizer(layers: nn.Module, args) -> torch.optim.Optimizer:
    """Of these layers only: another rank has an optimizer for its own."""
    return torch.optim.SGD(layers.parameters(), args.learning_rate, momentum=0.9)


def train(run_batch, optimizer, loader: DataLoader, args) -> tuple[list, list]:
    """The mean loss of each epoch on the rank that has it, and images per second."""
    losses, rates = [], []
    for epoch in range(args.total_epochs):
        if args.replicas:
            loader.sampler.set_epoch(epoch)
        log(f"Epoch {epoch} | Batch size {args.batch_size} | Steps {len(loader)}")
        start, done, loss_sum = time.perf_counter(), 0, 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss_sum += run_batch(images, labels) * len(labels)
            optimizer.step()
            done += len(labels)
        losses.append(loss_sum / done)
        rates.append(done / (time.perf_counter() - start))
    return losses, rates


def train_in_one_process(args, devices: list[torch.device]) -> None:
    """One process for the whole model: alone, or as one replica of several."""
    train_set, test_set = load_digits_split()
    model = TwoDevices(make_model(), args.cut, devices)
    model.micro_batches = args.micro_batches
    # every replica must reach this line; several devices: DDP must not choose one
    parallel_model = DDP(model, device_ids=None) if args.replicas else model

    def run_batch(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        scores = parallel_model(images)
        loss = F.cross_entropy(scores, labels.to(scores.device))
        loss.backward()
        return loss.detach()

    loader = make_loader(train_set, args)
    losses, rates = train(run_batch, make_optimizer(model, args), loader, args)
    if args.replicas:
        for loss in losses:
            # every replica: the mean over the replicas, 4 bytes
            dist.all_reduce(loss, dist.ReduceOp.AVG)
    correct, total = count_correct(model, test_set, devices[1])
    report(losses, rates, correct, total, args)


def train_in_two_processes(part: FirstPart | SecondPart, args) -> None:
    """The same by two ranks, each with its part of the model."""
    train_set, test_set = load_digits_split()
    optimizer = make_optimizer(part.layers, args)

    def run_batch(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return part.run_batch(images, labels, args.micro_batches)

    losses, rates = train(run_batch, optimizer, make_loader(train_set, args), args)
    for loss in losses:
        dist.broadcast(loss, src=SECOND)  # both ranks: 4 bytes
    correct = count_correct_in_two(part, test_set)
    report(losses, rates, correct, len(test_set), args)


def make_part(rank: int, args, device: torch.device) -> FirstPart | SecondPart:
    """The part of this rank. Both make the whole model, so that the weights agree."""
    torch.manual_seed(SEED)
    model = make_model()
    if rank == FIRST:
        return FirstPart(model[: args.cut], device)
    return SecondPart(model[args.cut :], device, shape_at_cut(model, args.cut))


def count_a_step(args, device: torch.device) -> None:
    """Print what each device holds and sends, counted in a step on a copy."""
    part = make_part(dist.get_rank(), args, device)
    images, labels = next(iter(make_loader(load_digits_split()[0], args)))

    optimizer = make_optimizer(part.layers, args)

    def step() -> None:
        part.run_batch(images, labels, args.micro_batches)
        optimizer.step()

    counted = count_step(part.layers, optimizer, step)
    print_tables(counted, make_model(), args)


@one_line_errors
def run_rank(rank: int, world_size: int, args: argparse.Namespace) -> None:
    """What each process does: one part of the model, or one replica of it."""
    devices = [torch.device("cpu")]  # with two accelerators, one process is enough
    if args.replicas:
        devices = choose_devices_of_replica(rank, args.replicas)
    backend = choose_backend(devices[0])
    dist.init_process_group(backend, rank=rank, world_size=world_size)
    torch.manual_seed(SEED)
    if args.replicas:
        log(f"{world_size} replicas, each in one process on {devices[0]}, {devices[1]}")
        train_in_one_process(args, devices)
    else:
        log(f"Cut after layer {args.cut}: two processes, backend {backend}")
        count_a_step(args, devices[0])
        train_in_two_processes(make_part(rank, args, devices[0]), args)
    dist.destroy_process_group()


@one_line_errors
def main() -> None:
    args = parse_arguments(__doc__, cuts=len(make_model()) - 1)
    if args.replicas or needs_two_processes(args):
        start_ranks(run_rank, args)
        return
    torch.manual_seed(SEED)
    devices = choose_devices(args)
    log(f"Cut after layer {args.cut}: one process, devices {devices[0]}, {devices[1]}")
    train_in_one_process(args, devices)


if __name__ == "__main__":
    main()
