"""Train a network on one device: the program that every later script changes.

Run from the folder of the workshop:

    python src/single_device.py 10 5              # 10 epochs, a snapshot every 5
    python src/single_device.py 20 5              # 10 more: goes on from snapshot.pt
    python src/single_device.py 10 5 --profile    # also: where the time goes
    CUDA_VISIBLE_DEVICES= python src/single_device.py 10 5    # hide NVIDIA's GPUs
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from command_line import (
    BadInput,
    check_output_file,
    one_line_errors,
    say,
    training_parser,
    write_metrics,
)
from devices import choose_device, describe, device_label
from digits import count_correct, load_digits_split, make_model
from step_timer import StepTimer

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches in an order that is new in every epoch, from a generator of its own."""
    generator = torch.Generator().manual_seed(SEED)
    return DataLoader(dataset, batch_size, shuffle=True, generator=generator)


def write_snapshot(snapshot: dict, path: Path) -> None:
    """Put a snapshot in the place of ``path``: wholly, or not at all.

    Raises:
        BadInput: it could not be written; an earlier snapshot is still there.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            torch.save(snapshot, file)
            file.flush()
            os.fsync(file.fileno())  # on the disk before the name points to it
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # torch.save wraps some errors
        temporary.unlink(missing_ok=True)
        raise BadInput(
            f"cannot write the snapshot {path} ({error}): what was there before is "
            "unharmed; free some space or choose another --snapshot"
        ) from error


def read_snapshot(path: Path) -> dict:
    """Read what :func:`write_snapshot` wrote; code inside the file is not run.

    Raises:
        BadInput: the file cannot be read, or holds something else.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file raises nearly anything
        damaged = not isinstance(error, PermissionError)
        reason = "damaged, or not a snapshot" if damaged else error.strerror
        raise BadInput(
            f"cannot read the snapshot {path} ({reason}): "
            "move it away or choose another --snapshot"
        ) from error


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
        self.epochs_run = 0
        self.timer = StepTimer(device, enabled=args.profile)
        self.losses: list[float] = []  # mean of each epoch trained in this run
        self.epoch_seconds: list[float] = []
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
        say(
            f"[{device_label(self.device)}] Epoch {epoch} | "
            f"Batch size {batch_size} | Steps {steps}"
        )
        start = time.perf_counter()
        # summed on the device: .item() in every step would make Python wait for it
        loss_sum = torch.zeros((), device=self.device)
        self.model.train()
        for images, labels in self.timer.each("data", self.train_loader):
            images, labels = images.to(self.device), labels.to(self.device)
            loss_sum += self.run_batch(images, labels) * len(labels)
        self.losses.append(loss_sum.item() / len(self.train_loader.dataset))
        self.epoch_seconds.append(time.perf_counter() - start)

    def save_snapshot(self) -> None:
        """Everything that the next epoch depends on."""
        snapshot = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epochs_run": self.epochs_run,
            "rng": torch.get_rng_state(),
            "loader_rng": self.train_loader.generator.get_state(),
        }
        if self.device.type != "cpu":  # dropout draws on the device it runs on
            device_module = torch.get_device_module(self.device)
            snapshot["device_rng"] = device_module.get_rng_state(self.device)
        write_snapshot(snapshot, self.snapshot_path)
        say(f"Snapshot of {self.epochs_run} epochs in {self.snapshot_path}")

    def load_snapshot(self) -> None:
        """Go on as if the run that saved the snapshot had never stopped."""
        snapshot = read_snapshot(self.snapshot_path)
        try:
            self.model.load_state_dict(snapshot["model"])
            self.optimizer.load_state_dict(snapshot["optimizer"])
            self.epochs_run = snapshot["epochs_run"]
            torch.set_rng_state(snapshot["rng"])
            self.train_loader.generator.set_state(snapshot["loader_rng"])
            if "device_rng" in snapshot and self.device.type != "cpu":
                device_module = torch.get_device_module(self.device)
                device_module.set_rng_state(snapshot["device_rng"], self.device)
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise BadInput(
                f"{self.snapshot_path} is not a snapshot of this training: "
                "move it away or choose another --snapshot"
            ) from error
        say(f"Resuming from {self.snapshot_path} after {self.epochs_run} epochs")

    def train(self, total_epochs: int) -> None:
        """Train until ``total_epochs`` are run, those of earlier runs included."""
        epochs = range(self.epochs_run, total_epochs)
        for epoch in tqdm(epochs, unit="epoch", disable=None):  # None: terminals only
            self.run_epoch(epoch)
            self.epochs_run = epoch + 1
            if self.epochs_run % self.save_every == 0:
                self.save_snapshot()


def report(trainer: Trainer, test_set: Dataset, args: argparse.Namespace) -> None:
    """Print the numbers of the run, and write them where ``--metrics`` says."""
    correct, total = count_correct(trainer.model, test_set, trainer.device)
    first, last, samples_per_s = None, None, None
    if trainer.losses:
        first, last = trainer.losses[0], trainer.losses[-1]
        # the median: the first epoch of a process also pays for what starts lazily
        epoch_seconds = statistics.median(trainer.epoch_seconds)
        samples_per_s = len(trainer.train_loader.dataset) / epoch_seconds
        say(f"Loss {first:.4f} -> {last:.4f} | {samples_per_s:,.0f} samples/s")
    else:
        say(f"Nothing to train: {trainer.epochs_run} epochs are already run")
    say(f"Test accuracy {correct / total:.2%} ({correct} of {total})")
    if args.profile and trainer.losses:
        say(trainer.timer.table())
    if args.metrics:
        write_metrics(
            args.metrics,
            loss=last,
            correct=correct,
            total=total,
            samples_per_s=samples_per_s,
            world_size=1,
            epochs=trainer.epochs_run,
        )


def parse_arguments() -> argparse.Namespace:
    """The command line; where results go is tried before anything is computed."""
    parser = training_parser(__doc__)
    parser.add_argument(
        "--profile", action="store_true", help="show where the time of a step goes"
    )
    args = parser.parse_args()
    check_output_file(args.snapshot, "--snapshot")
    if args.metrics:
        check_output_file(args.metrics, "--metrics")
    return args


@one_line_errors
def main() -> None:
    args = parse_arguments()
    device = choose_device()
    torch.manual_seed(SEED)
    train_set, test_set = load_digits_split()
    train_loader = make_loader(train_set, args.batch_size)
    model = make_model(DROPOUT).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    say(
        f"{len(train_set)} training images on {describe(device)}, "
        f"learning rate {args.learning_rate}, snapshot {args.snapshot}"
    )
    trainer = Trainer(model, optimizer, train_loader, device, args)
    trainer.train(args.total_epochs)
    report(trainer, test_set, args)


if __name__ == "__main__":
    main()
