"""The digits that lessons 01 to 12 train on, the command line, and the final numbers.

1,797 images of 8 x 8 pixels come with scikit-learn, so nothing is downloaded: 1,438 for
training and 359 for testing. 359 is a prime number: no number of ranks from 2 on
divides it, so a careless parallel evaluation shows.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    Subset,
    TensorDataset,
)

from common.distributed import (
    Parser,
    check_output_file,
    is_rank_0,
    log,
    positive_float,
    positive_int,
    speaks_first,
    world_size,
    write_json,
)

TEST_IMAGES = 359


def load_digits_split(seed: int = 0) -> tuple[TensorDataset, TensorDataset]:
    """The training set (1,438 images) and the test set (359 images).

    Images are float32 of shape [1, 8, 8], scaled to 0..1; labels are int64. The
    same seed gives the same split in every process, without communication.
    """
    # scikit-learn takes a second to import: pay for it only where data is loaded
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target, dtype=torch.int64)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    test, train = order[:TEST_IMAGES], order[TEST_IMAGES:]
    return (
        TensorDataset(images[train], labels[train]),
        TensorDataset(images[test], labels[test]),
    )


def make_model(dropout: float = 0.0) -> nn.Module:
    """A small convolutional network: images [B, 1, 8, 8] to scores [B, 10].

    It has 9,930 parameters. The initial weights come from torch's global random
    numbers: call ``torch.manual_seed`` first where they must be the same again.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),  # [B, 16, 8, 8]
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),  # [B, 32, 8, 8]
        nn.ReLU(),
        nn.MaxPool2d(2),  # [B, 32, 4, 4]
        nn.Flatten(),  # [B, 512]
        nn.Dropout(dropout),
        nn.Linear(512, 10),
    )


@torch.no_grad()
def count_correct(
    model: nn.Module,
    dataset: Dataset,
    device: torch.device | str = "cpu",
    rank: int = 0,
    world_size: int = 1,
) -> tuple[int, int]:
    """How many images of this rank's share are recognised, and how many it has.

    The share is every ``world_size``-th image from number ``rank`` on. Shares are
    disjoint and may differ by one in size; nothing is padded, so the sums over
    the ranks are exact. There is no communication here: the caller adds up.
    """
    share = Subset(dataset, range(rank, len(dataset), world_size))
    was_training = model.training
    model.eval()
    correct = torch.zeros((), dtype=torch.int64, device=device)
    for images, labels in DataLoader(share, batch_size=256):
        predicted = model(images.to(device)).argmax(dim=1)
        correct += (predicted == labels.to(device)).sum()
    model.train(was_training)
    return int(correct), len(share)


def count_correct_together(
    model: nn.Module, dataset: Dataset, device: torch.device | str = "cpu"
) -> tuple[int, int]:
    """How many images all ranks together recognise, and how many there are."""
    if not dist.is_initialized():
        return count_correct(model, dataset, device)
    rank, size = dist.get_rank(), dist.get_world_size()
    counts = torch.tensor(count_correct(model, dataset, device, rank, size)).to(device)
    # every rank must reach this line: [2] -> [2], 16 bytes
    dist.all_reduce(counts)
    correct, total = counts.tolist()
    return correct, total


class ResumableSampler(DistributedSampler):
    """Shuffles and deals out images like ``DistributedSampler``, from anywhere.

    The order of an epoch follows from seed and epoch alone, and rank r of N takes
    every N-th image from number r on. After any number of steps, all ranks together
    have therefore used the first images of that order, and the rest can be dealt out
    again: to as many ranks as before or to another number of them.
    """

    done = 0  # images of this epoch that all ranks together have used

    def set_position(self, epoch: int, done: int) -> None:
        """Choose the order of ``epoch``, and leave out the first ``done`` images."""
        self.set_epoch(epoch)
        self.done = min(done, len(self.dataset))  # padding is counted as done, too

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        padding = len(self) * self.num_replicas - (len(order) - self.done)
        rest = order[self.done :] + order[:padding]
        return iter(rest[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        """Images that this rank has still to use in this epoch."""
        return math.ceil((len(self.dataset) - self.done) / self.num_replicas)


def parse_training(
    description: str | None, *add_options: Callable[[argparse.ArgumentParser], None]
) -> argparse.Namespace:
    """The command line of a training program; ``add_options`` add what only it has."""
    parser = Parser(description)
    add, path = parser.add_argument, {"type": Path, "metavar": "FILE"}
    number, shown = {"type": positive_int}, " (default: %(default)s)"
    add("total_epochs", metavar="TOTAL_EPOCHS", **number, help="of all runs together")
    add("save_every", metavar="SAVE_EVERY", **number, help="epochs between snapshots")
    batch = "images per step in each process" + shown
    add("--batch-size", **number, default=32, help=batch)
    rate = "of SGD with momentum 0.9" + shown
    add("--learning-rate", type=positive_float, default=0.05, help=rate)
    saved = "written every SAVE_EVERY epochs, resumed from if it is there" + shown
    add("--snapshot", **path, default=Path("snapshot.pt"), help=saved)
    add("--metrics", **path, help="write the final numbers to this file as JSON")
    for add_more in add_options:
        add_more(parser)
    args = parser.parse_args()
    if speaks_first():  # other nodes may not even see the folder
        check_output_file(args.snapshot, "--snapshot")
        if args.metrics:
            check_output_file(args.metrics, "--metrics")
    return args


def report(trainer, test_set: Dataset, args: argparse.Namespace) -> None:
    """Print the final numbers, and write them where ``--metrics`` says; all ranks."""
    correct, total = count_correct_together(trainer.model, test_set, trainer.device)
    loss, samples_per_s = None, None  # unless something was trained
    if trainer.losses:
        loss = trainer.losses[-1]
        # the median: the first epoch of a process also pays for what starts lazily
        # an epoch that was resumed at its very end had nothing left to do
        rates = [rate for rate in trainer.rates if rate]
        samples_per_s = statistics.median(rates) * world_size() if rates else None
        speed = f" | {samples_per_s:,.0f} samples/s" if samples_per_s else ""
        log(f"Loss {trainer.losses[0]:.4f} -> {loss:.4f}{speed}")
    else:
        log(f"Nothing to train: {trainer.epochs_run} epochs are already run")
    log(f"Test accuracy {correct / total:.2%} ({correct} of {total})")
    if args.metrics and is_rank_0():
        numbers = {
            "loss": loss,
            "accuracy": correct / total,
            "correct": correct,
            "total": total,
            "samples_per_s": samples_per_s,
            "world_size": world_size(),
            "epochs": trainer.epochs_run,
        }
        write_json(args.metrics, "--metrics", numbers)
