"""The digits that lessons 01 to 12 train on, the command line, and the final numbers.

1,797 images of 8 x 8 pixels come with scikit-learn, so nothing is downloaded: 1,438 for
training and 359 for testing. 359 is prime: no number of ranks from 2 on divides it.
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from common import distributed
from common.distributed import BadInput, log, output_file, positive_float, positive_int

WIDTH = 96  # makes a step long enough to be worth sharing among ranks


def load_digits_split(seed: int = 0) -> tuple[TensorDataset, TensorDataset]:
    """Training and test set: float32 images [1, 8, 8] scaled to 0..1, int64 labels."""
    # scikit-learn takes a second to import: pay for it only where data is loaded
    from sklearn.datasets import load_digits

    images, labels = map(torch.tensor, load_digits(return_X_y=True))
    images = images.float().reshape(-1, 1, 8, 8) / 16
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    test, train = order[:359], order[359:]
    test_set = TensorDataset(images[test], labels[test])
    return TensorDataset(images[train], labels[train]), test_set


def make_model(dropout: float = 0.0, width: int = 16) -> nn.Module:
    """Images [B, 1, 8, 8] to scores [B, 10]; 197,770 parameters at the width of 96."""
    return nn.Sequential(
        nn.Conv2d(1, width, kernel_size=3, padding=1),  # [B, C, 8, 8], C = width
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, kernel_size=3, padding=1),  # [B, 2 C, 8, 8]
        nn.ReLU(),
        nn.MaxPool2d(2),  # [B, 2 C, 4, 4]
        nn.Flatten(),  # [B, 32 C]
        nn.Dropout(dropout),
        nn.Linear(32 * width, 10),
    )


@torch.no_grad()
def count_correct(model: nn.Module, dataset: Dataset, device="cpu") -> tuple[int, int]:
    """How many images all ranks together recognize, and of how many; none twice."""
    rank = dist.get_rank() if dist.is_initialized() else 0
    share = Subset(dataset, range(rank, len(dataset), distributed.world_size()))
    model.eval()
    counts = torch.tensor([0, len(share)], device=device)
    for images, labels in DataLoader(share, batch_size=256):
        counts[0] += (model(images.to(device)).argmax(1) == labels.to(device)).sum()
    if dist.is_initialized():
        dist.all_reduce(counts)  # every rank must reach this line: [2] -> [2], 16 bytes
    return tuple(counts.tolist())


@dataclass(frozen=True)
class TrainingConfig:
    """The command line of a training program, the same on all ranks."""

    total_epochs: int  # of all runs together
    save_every: int  # epochs between two snapshots
    batch_size: int  # images per step, per rank
    learning_rate: float  # of SGD
    width: int  # features of the first layer
    snapshot: Path  # saved to, and resumed from
    metrics: Path | None  # file for the final numbers
    # only of programs that ask for it
    nprocs: int | None = None  # ranks to start
    save_every_steps: int | None = None


def parse_training(description: str | None, **more: str) -> TrainingConfig:
    """The command line of a training program; ``more`` are whole numbers, with help."""
    parser = distributed.Parser(description)
    add, shown = parser.add_argument, " (default: %(default)s)"
    number, file = {"type": positive_int}, {"type": output_file, "metavar": "FILE"}
    own = Path(parser.prog).stem + ".pt"
    add("total_epochs", metavar="TOTAL_EPOCHS", **number, help="of all runs together")
    add("save_every", metavar="SAVE_EVERY", **number, help="epochs between snapshots")
    add("--batch-size", **number, default=32, help="images per step, per rank" + shown)
    add("--learning-rate", type=positive_float, default=0.05, help="of SGD" + shown)
    add("--width", **number, default=WIDTH, help="features of the first layer" + shown)
    add("--snapshot", **file, default=own, help="to save to and resume from" + shown)
    add("--metrics", **file, help="write the final numbers to this file as JSON")
    for name, text in more.items():
        add("--" + name.replace("_", "-"), **number, help=text)
    return TrainingConfig(**vars(parser.parse_args()))


def report(run, model: nn.Module, test_set: Dataset) -> None:
    """Print and write the final numbers of a ``Run``; BadInput if it is not saved."""
    correct, total = count_correct(model, test_set, next(model.parameters()).device)
    ranks, loss, speed = distributed.world_size(), None, None
    if run.losses:
        # the median: the first epoch of a process also pays for what starts lazily
        loss, speed = run.losses[-1], statistics.median(run.rates) * ranks
        log(f"Loss {run.losses[0]:.4f} -> {loss:.4f} | {speed:,.0f} samples/s")
    else:
        log(f"Nothing to train: {run.counters['epochs_run']} epochs are already run")
    log(f"Test accuracy {correct / total:.2%} ({correct} of {total})")
    metrics = {
        "loss": loss,
        "accuracy": correct / total,
        "samples_per_s": speed,
        "correct": correct,
        "total": total,
        "world_size": ranks,
        "epochs": run.counters["epochs_run"],
    }
    distributed.write_json(run.config.metrics, metrics)
    if run.not_saved:
        raise BadInput(run.not_saved)
