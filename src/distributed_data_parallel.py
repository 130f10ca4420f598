"""Train on all devices of one machine: one process for each, started by this script.

Run from the folder of the workshop:

    python src/distributed_data_parallel.py 10 5    # a rank per GPU; without GPUs, 2
    python src/distributed_data_parallel.py 10 5 --nprocs 4
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from tqdm import tqdm

from command_line import (
    BadInput,
    check_output_file,
    training_parser,
    write_metrics,
)
from devices import choose_backend, choose_device, describe
from digits import count_correct_together, load_digits_split, make_model
from one_voice import is_rank_0, no_bar, one_line_errors, say
from spawning import add_spawn_options, choose_nprocs, choose_port, share_cores
from step_timer import StepTimer

SEED = 0
DROPOUT = 0.1  # each rank draws its own: see Trainer.run_epoch


def setup(rank: int, world_size: int) -> torch.device:
    """Take one of the machine's devices and meet the other ranks."""
    device = choose_device(rank)  # on one machine, rank and local rank are equal
    # every rank must reach this line; MASTER_ADDR and MASTER_PORT say where they meet
    dist.init_process_group(choose_backend(device), rank=rank, world_size=world_size)
    return device


def cleanup() -> None:
    """Leave the other ranks. DDP must be gone by now: its end needs the group."""
    dist.destroy_process_group()


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches of this rank's share, in an order that is new in every epoch.

    ``set_epoch`` chooses the order. All shares are of one size: where the images
    do not divide evenly, the sampler repeats some, or ranks would wait for ever.
    """
    sampler = DistributedSampler(dataset, shuffle=True, seed=SEED)
    return DataLoader(dataset, batch_size, sampler=sampler)


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
        raise BadInput(
            f"cannot read the snapshot {path} ({type(error).__name__}): it is damaged "
            "or not a snapshot; move it away or choose another --snapshot"
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
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.save_every = args.save_every
        self.snapshot_path = args.snapshot
        self.epochs_run = 0
        self.timer = StepTimer(device, enabled=args.profile)
        self.losses: list[float] = []  # mean of each epoch trained in this run
        self.epoch_seconds: list[float] = []
        if self.snapshot_path.exists():
            self.load_snapshot()
        # every rank must reach this line: rank 0's weights are sent to all
        self.ddp_model = DDP(model, None if device.type == "cpu" else [device])

    def run_batch(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """One step: images [B, 1, 8, 8], labels [B]; the mean loss of the batch."""
        self.optimizer.zero_grad()
        with self.timer("forward"):
            loss = F.cross_entropy(self.ddp_model(images), labels)
        with self.timer("backward"):
            loss.backward()  # gradients become the mean over the ranks in here
        with self.timer("step"):
            self.optimizer.step()  # the same on every rank: nothing is sent
        return loss.detach()

    def run_epoch(self, epoch: int) -> None:
        """One pass over the training set, all ranks together."""
        batch_size, steps = self.train_loader.batch_size, len(self.train_loader)
        say(
            f"[rank {self.rank} of {self.world_size}] Epoch {epoch} | "
            f"Batch size {batch_size} | Steps {steps}"
        )
        start = time.perf_counter()
        self.train_loader.sampler.set_epoch(epoch)
        # from epoch and rank: ranks drop other features, a resumed run the same again
        torch.manual_seed(SEED + epoch * self.world_size + self.rank)
        # summed on the device: .item() in every step would make Python wait for it
        loss_sum = torch.zeros((), device=self.device)
        self.model.train()
        for images, labels in self.timer.each("data", self.train_loader):
            images, labels = images.to(self.device), labels.to(self.device)
            loss_sum += self.run_batch(images, labels) * len(labels)
        # every rank must reach this line: the mean over the ranks, 4 bytes
        dist.all_reduce(loss_sum, dist.ReduceOp.AVG)
        self.losses.append(loss_sum.item() / len(self.train_loader.sampler))
        self.epoch_seconds.append(time.perf_counter() - start)

    def save_snapshot(self) -> None:
        """Everything that the next epoch depends on; the same on every rank."""
        snapshot = {
            "model": self.model.state_dict(),  # not ddp_model's: no "module." in keys
            "optimizer": self.optimizer.state_dict(),
            "epochs_run": self.epochs_run,
        }
        if is_rank_0():
            write_snapshot(snapshot, self.snapshot_path)
        say(f"Snapshot of {self.epochs_run} epochs in {self.snapshot_path}")

    def load_snapshot(self) -> None:
        """Go on as if the run that saved the snapshot had never stopped."""
        snapshot = read_snapshot(self.snapshot_path)
        try:
            self.model.load_state_dict(snapshot["model"])
            self.optimizer.load_state_dict(snapshot["optimizer"])
            self.epochs_run = snapshot["epochs_run"]
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise BadInput(
                f"{self.snapshot_path} is not a snapshot of this training: "
                "move it away or choose another --snapshot"
            ) from error
        say(f"Resuming from {self.snapshot_path} after {self.epochs_run} epochs")

    def train(self, total_epochs: int) -> None:
        """Train until ``total_epochs`` are run, those of earlier runs included."""
        epochs = range(self.epochs_run, total_epochs)
        for epoch in tqdm(epochs, unit="epoch", disable=no_bar()):
            self.run_epoch(epoch)
            self.epochs_run = epoch + 1
            if self.epochs_run % self.save_every == 0:
                self.save_snapshot()


def report(trainer: Trainer, test_set: Dataset, args: argparse.Namespace) -> None:
    """Print the numbers of the run, and write them where ``--metrics`` says."""
    # every rank must reach this line
    correct, total = count_correct_together(trainer.model, test_set, trainer.device)
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
    if args.metrics and is_rank_0():
        write_metrics(
            args.metrics,
            loss=last,
            correct=correct,
            total=total,
            samples_per_s=samples_per_s,
            world_size=trainer.world_size,
            epochs=trainer.epochs_run,
        )


def parse_arguments() -> argparse.Namespace:
    """The command line; where results go is tried before anything is computed."""
    parser = training_parser(__doc__)
    parser.add_argument(
        "--profile", action="store_true", help="show where the time of a step goes"
    )
    add_spawn_options(parser)
    args = parser.parse_args()
    check_output_file(args.snapshot, "--snapshot")
    if args.metrics:
        check_output_file(args.metrics, "--metrics")
    return args


def train_and_report(args: argparse.Namespace, device: torch.device) -> None:
    """What happens between setup and cleanup."""
    torch.manual_seed(SEED)
    train_set, test_set = load_digits_split()
    train_loader = make_loader(train_set, args.batch_size)
    model = make_model(DROPOUT).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    say(
        f"{len(train_set)} training images on {dist.get_world_size()} ranks, "
        f"each on {describe(device)}, backend {dist.get_backend()}, "
        f"learning rate {args.learning_rate}, snapshot {args.snapshot}"
    )
    trainer = Trainer(model, optimizer, train_loader, device, args)
    trainer.train(args.total_epochs)
    report(trainer, test_set, args)


@one_line_errors
def run_rank(rank: int, world_size: int, args: argparse.Namespace) -> None:
    """What each process does; ``mp.spawn`` gives it its rank."""
    device = setup(rank, world_size)
    # in a function of its own: when it returns, DDP is gone
    train_and_report(args, device)
    cleanup()


@one_line_errors
def main() -> None:
    args = parse_arguments()
    world_size = choose_nprocs(args.nprocs)
    # the ranks inherit the environment
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(choose_port(args.master_port))
    share_cores(world_size)
    mp.spawn(run_rank, args=(world_size, args), nprocs=world_size)


if __name__ == "__main__":
    main()
