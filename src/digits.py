"""The data and the model that the lessons train on: handwritten digits.

1,797 images of 8 x 8 pixels come with scikit-learn, so nothing is downloaded.
They are split into 1,438 for training and 359 for testing. 359 is a prime number:
no number of ranks from 2 on divides it, so a careless parallel evaluation shows.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

TEST_IMAGES = 359
CLASSES = 10


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
        nn.Linear(512, CLASSES),
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
    """How many images all ranks together recognise, and how many there are.

    Exact on any world size, because the shares of :func:`count_correct` are.
    """
    share = count_correct(
        model, dataset, device, dist.get_rank(), dist.get_world_size()
    )
    counts = torch.tensor(share, device=device)
    # every rank must reach this line: [2] -> [2], 16 bytes
    dist.all_reduce(counts)
    correct, total = counts.tolist()
    return correct, total


def accuracy(
    model: nn.Module, dataset: Dataset, device: torch.device | str = "cpu"
) -> float:
    """The share of images recognised, 0..1, in one process."""
    correct, total = count_correct(model, dataset, device)
    return correct / total
