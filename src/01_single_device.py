"""Train a network on one device: the program that every later one changes.

Run from the folder of the workshop:

    python src/01_single_device.py 10 5              # 10 epochs, a snapshot every 5
    python src/01_single_device.py 20 5              # 10 more: resumes snapshot.pt
    CUDA_VISIBLE_DEVICES= python src/01_single_device.py 10 5    # hide NVIDIA's GPUs
"""

import argparse
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from common import data, distributed, snapshot

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches in an order that is new in every epoch, from a generator of its own."""
    generator = torch.Generator().manual_seed(SEED)
    return DataLoader(dataset, batch_size, shuffle=True, generator=generator)


class Trainer:
    """A model, what trains it, and how far the run has come."""

    def __init__(
        self, args: argparse.Namespace, train_set: Dataset, device: torch.device
    ):
        self.args, self.device = args, device
        self.train_loader = make_loader(train_set, args.batch_size)
        self.model = data.make_model(DROPOUT).to(device)
        weights = self.model.parameters()
        self.optimizer = torch.optim.SGD(weights, args.learning_rate, momentum=0.9)
        self.epochs_run = 0
        self.images_done = 0  # of this epoch
        # of this epoch; on the device: .item() in every step would wait for it
        self.loss_sum = torch.zeros((), device=device)
        self.not_saved = ""  # why the latest snapshot is not on the disk
        self.losses: list[float] = []  # mean of each epoch trained in this run
        self.rates: list[float] = []  # images per second of each
        snapshot.resume(self, args.snapshot)

    def run_batch(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """One step: images [B, 1, 8, 8], labels [B]; the mean loss of the batch."""
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run_epoch(self, epoch: int) -> None:
        """One pass over the training set."""
        batch_size, steps = self.train_loader.batch_size, len(self.train_loader)
        distributed.log(
            f"[{distributed.label(self.device)}] Epoch {epoch} | "
            f"Batch size {batch_size} | Steps {steps}"
        )
        start = time.perf_counter()
        self.model.train()
        for images, labels in self.train_loader:
            images, labels = images.to(self.device), labels.to(self.device)
            self.loss_sum += self.run_batch(images, labels) * len(labels)
            self.images_done += len(labels)
        self.losses.append(self.loss_sum.item() / self.images_done)
        seconds = time.perf_counter() - start
        self.rates.append(len(self.train_loader.sampler) / seconds)
        self.loss_sum.zero_()
        self.images_done = 0

    def state_dict(self) -> dict:
        """Everything that the next epoch depends on."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epochs_run": self.epochs_run,
            "rng": snapshot.get_random_state(self.device),
            "loader_rng": self.train_loader.generator.get_state(),
        }

    def load_state_dict(self, state: dict) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epochs_run = state["epochs_run"]
        snapshot.set_random_state(state["rng"], self.device)
        self.train_loader.generator.set_state(state["loader_rng"])

    def train(self) -> str:
        """Train what is left of all epochs; returns why the end is not saved, or ""."""
        epochs = range(self.epochs_run, self.args.total_epochs)
        for epoch in tqdm(epochs, unit="epoch", disable=distributed.no_bar()):
            self.run_epoch(epoch)
            self.epochs_run = epoch + 1
            if self.epochs_run % self.args.save_every == 0:
                self.not_saved = snapshot.save(self, self.args.snapshot)
        return self.not_saved


def train_and_report(args: argparse.Namespace, device: torch.device) -> str:
    """Train, print the results; returns why the last snapshot is not saved, or ""."""
    torch.manual_seed(SEED)
    train_set, test_set = data.load_digits_split()
    distributed.log(
        f"{len(train_set)} training images on {distributed.describe_world(device)}, "
        f"learning rate {args.learning_rate}, snapshot {args.snapshot}"
    )
    trainer = Trainer(args, train_set, device)
    not_saved = trainer.train()
    data.report(trainer, test_set, args)
    return not_saved


@distributed.one_line_errors
def main() -> None:
    args = data.parse_training(__doc__)
    not_saved = train_and_report(args, distributed.choose_device())
    snapshot.check_saved(not_saved)


if __name__ == "__main__":
    main()
