"""Train a network with its first layers in one process and the rest in another.

    python src/12_two_processes.py 10                    # two processes on the CPU
    python src/12_two_processes.py 10 --micro-batches 4  # the two work side by side

It starts its two ranks itself. Each trains one part, and send and recv carry what
crosses the cut.
"""

import copy

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from common.data import load_digits_split, make_model
from common.distributed import log, one_line_errors
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

FIRST, SECOND = 0, 1  # the ranks that hold the two parts
IMAGE = torch.Size([1, 8, 8])
CPU = torch.device("cpu")  # with two accelerators, one process is enough


class FirstPart:
    """The first layers, on the rank that uses the images."""

    def __init__(self, layers: nn.Module, device: torch.device):
        self.layers = layers.to(device)
        self.device = device

    def run_batch(
        self, images: torch.Tensor, labels: torch.Tensor, micro_batches: int = 1
    ) -> torch.Tensor:
        """Leave the gradients of the batch in these layers; rank 1 has the loss."""
        waiting = []
        for part in images.chunk(micro_batches):
            hidden = self.layers(part.to(self.device))
            # b x S bytes; returns when the other rank has received them
            dist.send(hidden.detach(), dst=SECOND)
            waiting.append(hidden)  # with its graph, which backward needs
        for hidden in waiting:
            gradient = torch.empty_like(hidden)
            # b x S bytes: how the loss changes with each number that was sent
            dist.recv(gradient, src=SECOND)
            hidden.backward(gradient)
        return torch.zeros((), device=self.device)


class SecondPart:
    """The last layers, on the rank that uses the labels and has the loss."""

    def __init__(self, layers: nn.Module, device: torch.device, shape: torch.Size):
        self.layers = layers.to(device)
        self.device = device
        self.shape = shape  # of what it receives for one image

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
            # received numbers have no history: this rank's graph starts here
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
    """How many images are recognized; both ranks call this and get the number."""
    correct = torch.zeros((), dtype=torch.int64, device=part.device)
    for images, labels in DataLoader(dataset, batch_size=256):
        if isinstance(part, FirstPart):
            dist.send(part.layers(images.to(part.device)), dst=SECOND)
        else:
            scores = part.layers(part.receive(len(labels)))
            correct += (scores.argmax(dim=1) == labels.to(part.device)).sum()
    dist.broadcast(correct, src=SECOND)  # both ranks: 8 bytes
    return int(correct)


def make_part(rank: int, cut: int) -> FirstPart | SecondPart:
    """The part of this rank. Both build the whole model, so the weights agree."""
    torch.manual_seed(SEED)
    model = make_model()
    if rank == FIRST:
        return FirstPart(model[:cut], CPU)
    return SecondPart(model[cut:], CPU, shape_at_cut(model, cut))


def shape_at_cut(
    model: nn.Sequential, cut: int, image: torch.Size = IMAGE
) -> torch.Size:
    """The shape of what crosses the cut for one image; only shapes are computed."""
    x = torch.empty(1, *image, device="meta")
    return copy.deepcopy(model[:cut]).to("meta").float()(x).shape[1:]


def train_in_two_processes(
    part: FirstPart | SecondPart, config: TwoPartsConfig
) -> None:
    """Train the part of this rank; the other rank does the same with its own."""
    train_set, test_set = load_digits_split()
    optimizer = make_optimizer(part.layers, config.learning_rate)

    def run_batch(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return part.run_batch(images, labels, config.micro_batches)

    loader = make_loader(train_set, config.batch_size)
    losses, rates = train(run_batch, optimizer, loader, config.total_epochs)
    for loss in losses:
        dist.broadcast(loss, src=SECOND)  # both ranks: 4 bytes
    correct = count_correct_in_two(part, test_set)
    report(losses, rates, correct, len(test_set), config)


@one_line_errors
def run_rank(rank: int, world_size: int, config: TwoPartsConfig) -> None:
    """Train one part of the model, in its own process."""
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    log(f"Cut after layer {config.cut}: two processes, backend gloo")
    train_in_two_processes(make_part(rank, config.cut), config)
    dist.destroy_process_group()


def parse_arguments() -> TwoPartsConfig:
    return parse_model_parallel(__doc__, TwoPartsConfig)


@one_line_errors
def main() -> None:
    start_ranks(run_rank, 2, parse_arguments())


if __name__ == "__main__":
    main()
