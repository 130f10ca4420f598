"""Train a network on one device: the program that every later script changes.

Run from the folder of the workshop:

    python src/01_single_device.py 10 5              # 10 epochs, a snapshot every 5
    python src/01_single_device.py 20 5              # 10 more: goes on from snapshot.pt
    python src/01_single_device.py 10 5 --profile    # also: where the time goes
    CUDA_VISIBLE_DEVICES= python src/01_single_device.py 10 5    # hide NVIDIA's GPUs
"""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from common.cli import parse_training
from common.data import load_digits_split, make_model
from common.devices import choose_device
from common.logging import (
    describe_world,
    log,
    no_bar,
    one_line_errors,
    short_name,
)
from common.measure import StepTimer, report
from common.resume import get_random_state, set_random_state
from common.snapshot import (
    check_saved,
    progress,
    read_snapshot,
    restoring_from,
    save_or_go_on,
)

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches in an order that is new in every epoch, from a generator of its own."""
    generator = torch.Generator().manual_seed(SEED)
    return DataLoader(dataset, batch_size, shuffle=True, generator=generator)


class Trainer:
    """A model, what trains it, and how far the training has come."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        train_loader: DataLoader,
        device: torch.device,
        args: argparse.Namespace,
    ):
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader
        self.device = device
        self.save_every = args.save_every
        self.snapshot_path = args.snapshot
        self.not_saved = ""  # why the latest snapshot is not on the disk
        self.epochs_run = 0
        self.images_done = 0  # of this epoch
        # of this epoch; on the device: .item() in every step would wait for it
        self.loss_sum = torch.zeros((), device=device)
        self.timer = StepTimer(device, enabled=args.profile)
        self.losses: list[float] = []  # mean of each epoch trained in this run
        self.rates: list[float] = []  # images per second of each
        if self.snapshot_path.exists():
            self.load_snapshot()

    def run_batch(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """One step: images [B, 1, 8, 8], labels [B]; the mean loss of the batch."""
        self.optimizer.zero_grad()
        with self.timer("forward"):
            loss = F.cross_entropy(self.model(images), labels)
        with self.timer("backward"):
            loss.backward()
        with self.timer("step"):
            self.optimizer.step()
        return loss.detach()

    def run_epoch(self, epoch: int) -> None:
        """One pass over the training set."""
        batch_size, steps = self.train_loader.batch_size, len(self.train_loader)
        log(
            f"[{short_name(self.device)}] Epoch {epoch} | "
            f"Batch size {batch_size} | Steps {steps}"
        )
        start = time.perf_counter()
        self.model.train()
        for images, labels in self.timer.each("data", self.train_loader):
            images, labels = images.to(self.device), labels.to(self.device)
            self.loss_sum += self.run_batch(images, labels) * len(labels)
            self.images_done += len(labels)
        self.losses.append(self.loss_sum.item() / self.images_done)
        seconds = time.perf_counter() - start
        self.rates.append(len(self.train_loader.sampler) / seconds)
        self.loss_sum.zero_()
        self.images_done = 0

    def save_snapshot(self) -> None:
        """Everything that the next epoch depends on."""
        snapshot = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epochs_run": self.epochs_run,
            "rng": get_random_state(self.device),
            "loader_rng": self.train_loader.generator.get_state(),
        }
        self.not_saved = save_or_go_on(snapshot, self.snapshot_path)

    def load_snapshot(self) -> None:
        """Go on as if the run that saved the snapshot had never stopped."""
        snapshot = read_snapshot(self.snapshot_path)
        with restoring_from(self.snapshot_path):
            self.model.load_state_dict(snapshot["model"])
            self.optimizer.load_state_dict(snapshot["optimizer"])
            self.epochs_run = snapshot["epochs_run"]
            set_random_state(snapshot["rng"], self.device)
            self.train_loader.generator.set_state(snapshot["loader_rng"])
        log(f"Resuming from {self.snapshot_path} after {progress(snapshot)}")

    def train(self, total_epochs: int) -> None:
        """Train until ``total_epochs`` are run, those of earlier runs included."""
        epochs = range(self.epochs_run, total_epochs)
        for epoch in tqdm(epochs, unit="epoch", disable=no_bar()):
            self.run_epoch(epoch)
            self.epochs_run = epoch + 1
            if self.epochs_run % self.save_every == 0:
                self.save_snapshot()


def train_and_report(args: argparse.Namespace, device: torch.device) -> str:
    """Train, print the results; returns why the last snapshot is not saved, or ""."""
    torch.manual_seed(SEED)
    train_set, test_set = load_digits_split()
    train_loader = make_loader(train_set, args.batch_size)
    model = make_model(DROPOUT).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    log(
        f"{len(train_set)} training images on {describe_world(device)}, "
        f"learning rate {args.learning_rate}, snapshot {args.snapshot}"
    )
    trainer = Trainer(model, optimizer, train_loader, device, args)
    trainer.train(args.total_epochs)
    report(trainer, test_set, args)
    return trainer.not_saved


@one_line_errors
def main() -> None:
    args = parse_training(__doc__)
    device = choose_device()
    not_saved = train_and_report(args, device)
    check_saved(not_saved)


if __name__ == "__main__":
    main()
