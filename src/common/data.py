"""The data of the lessons, and how ranks share it out; nothing is downloaded.

Lessons 01 to 12 train on handwritten digits: the 1,797 images of 8 x 8 pixels that come
with scikit-learn, 1,438 for training and 359 for testing. 359 is a prime number: no
number of ranks from 2 on divides it, so a careless parallel evaluation shows.

Lessons 13 to 16 train on text: the source files of Python's own standard library. The
same Python has the same bytes, so two people with one version see the same losses.
"""

from __future__ import annotations

import math
import sysconfig
from collections.abc import Iterator
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

from common.cli import BadInput

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


class ResumableSampler(DistributedSampler):
    """Shuffles and deals out images like ``DistributedSampler``, from anywhere.

    The order of an epoch follows from seed and epoch alone, and rank r of W takes
    every W-th image from number r on. After any number of steps, all ranks together
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


SEED = 0
TEST_EVERY = 10  # one file of ten is kept for the test
MARK = b"\n\n"  # between two files


def stdlib_files(folder: Path | None = None) -> list[Path]:
    """The ``.py`` files right in the folder of the standard library, by name.

    Files that differ between builds of one version (``_sysconfigdata*``) and what was
    installed later (``site-packages``) are not among them.

    Raises:
        BadInput: there are none, as in some small distributions.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    files = sorted(
        path for path in folder.glob("*.py") if not path.name.startswith("_sysconfig")
    )
    if len(files) < TEST_EVERY:
        raise BadInput(
            f"the standard library in {folder} has no source files to train on: use a "
            "Python that comes with them, such as the one of your distribution"
        )
    return files


def load_text(folder: Path | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """(text to train on, text to test on): bytes as uint8, one dimension each."""
    parts: tuple[list[bytes], list[bytes]] = [], []
    for number, path in enumerate(stdlib_files(folder)):
        parts[number % TEST_EVERY == TEST_EVERY - 1].append(path.read_bytes())
    train, test = (
        torch.frombuffer(bytearray(MARK.join(part)), dtype=torch.uint8)
        for part in parts
    )
    return train, test


def batch_of_step(
    text: torch.Tensor, step: int, batch_size: int, context: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(inputs, targets) of one step, [B, T] each: pieces of the text, and what follows.

    They depend on the number of the step alone. So every rank can draw the global
    batch of all ranks and take its part, and a resumed run goes on with the batch that
    would have come next.
    """
    generator = torch.Generator().manual_seed(SEED + step)
    starts = torch.randint(len(text) - context, (batch_size, 1), generator=generator)
    pieces = text[starts + torch.arange(context + 1)].long()  # [B, T + 1]
    return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()


def unigram_entropy(text: torch.Tensor) -> float:
    """Nats per byte of who knows how frequent each byte is, and nothing else.

    A model whose loss is not clearly below has learnt nothing from what comes before.
    """
    chances = torch.bincount(text.long(), minlength=256).double() / len(text)
    return float(torch.special.entr(chances).sum())
