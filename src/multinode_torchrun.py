"""Train in many processes, on one or many nodes, started by torchrun.

Run from the folder of the workshop. On one machine, 2 processes:

    torchrun --standalone --nproc-per-node=2 src/multinode_torchrun.py 10 5

On two nodes with 4 processes each, the same command on both (HOST is the first):

    torchrun --nnodes=2 --nproc-per-node=4 --rdzv-id=1 --rdzv-backend=c10d \\
        --rdzv-endpoint=HOST:29500 src/multinode_torchrun.py 10 5
"""

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from tqdm import tqdm

from command_line import (
    BadInput,
    check_output_file,
    one_line_errors,
    say,
    training_parser,
    write_metrics,
)
from devices import choose_backend, choose_device, describe
from digits import count_correct, load_digits_split, make_model
from step_timer import StepTimer

SEED = 0
DROPOUT = 0.1  # each rank draws its own: see Trainer.run_epoch


class TorchrunEnv(NamedTuple):
    """Who this process is, as torchrun says."""

    rank: int  # of all processes on all nodes
    local_rank: int  # of the processes on this node: the number of its device
    world_size: int  # all processes
    node_rank: int  # of the nodes; torchrun calls it the group rank


def read_torchrun_env() -> TorchrunEnv:
    """Read the environment; nothing else in this script does.

    Raises:
        BadInput: the process was not started by torchrun.
    """
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK")
    try:
        return TorchrunEnv(*(int(os.environ[name]) for name in names))
    except (KeyError, ValueError) as error:
        raise BadInput(
            f"torchrun did not start this process ({', '.join(names)} must be set): "
            "torchrun --standalone --nproc-per-node=2 src/multinode_torchrun.py 10 5"
        ) from error


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
        env: TorchrunEnv,
        args: argparse.Namespace,
    ):
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader
        self.device = device
        self.env = env
        self.save_every = args.save_every
        self.snapshot_path = args.snapshot
        self.epochs_run = 0
        self.timer = StepTimer(device, enabled=args.profile)
        self.losses: list[float] = []  # mean of each epoch trained in this run
        self.epoch_seconds: list[float] = []
        self.load_snapshot()
        # every rank must reach this line: rank 0's weights are sent to all
        device_ids = None if device.type == "cpu" else [env.local_rank]
        self.ddp_model = DDP(model, device_ids=device_ids)

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
            f"[node {self.env.node_rank} local {self.env.local_rank} "
            f"rank {self.env.rank}] Epoch {epoch} | "
            f"Batch size {batch_size} | Steps {steps}"
        )
        start = time.perf_counter()
        self.train_loader.sampler.set_epoch(epoch)
        # random numbers derived from epoch and rank need not be in the snapshot,
        # and no two ranks drop the same features
        torch.manual_seed(SEED + epoch * self.env.world_size + self.env.rank)
        # [sum of the losses, number of images], summed on the device
        sums = torch.zeros(2, device=self.device)
        self.model.train()
        for images, labels in self.timer.each("data", self.train_loader):
            images, labels = images.to(self.device), labels.to(self.device)
            loss = self.run_batch(images, labels)
            sums += torch.stack([loss, loss.new_ones(())]) * len(labels)
        # every rank must reach this line: [2] -> [2], 8 bytes
        dist.all_reduce(sums)
        self.losses.append((sums[0] / sums[1]).item())
        self.epoch_seconds.append(time.perf_counter() - start)

    def save_snapshot(self) -> None:
        """Everything that the next epoch depends on; only rank 0 of all writes."""
        if self.env.rank != 0:
            return
        snapshot = {
            "model": self.model.state_dict(),  # not ddp_model's: no "module." in keys
            "optimizer": self.optimizer.state_dict(),
            "epochs_run": self.epochs_run,
        }
        write_snapshot(snapshot, self.snapshot_path)
        say(f"Snapshot of {self.epochs_run} epochs in {self.snapshot_path}")

    def load_snapshot(self) -> None:
        """Go on as if the run that saved the snapshot had never stopped.

        Rank 0 reads and sends: the other nodes need not see the file.
        """
        box = [None]
        if self.env.rank == 0 and self.snapshot_path.exists():
            box[0] = read_snapshot(self.snapshot_path)
        # every rank must reach this line; None: there is no snapshot yet
        dist.broadcast_object_list(box, src=0)
        if box[0] is None:
            return
        snapshot = box[0]
        try:
            self.model.load_state_dict(snapshot["model"])
            self.optimizer.load_state_dict(snapshot["optimizer"])
            self.epochs_run = snapshot["epochs_run"]
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise BadInput(
                f"{self.snapshot_path} is not a snapshot of this training: "
                "move it away or choose another --snapshot"
            ) from error
        if self.env.rank == 0:
            say(f"Resuming from {self.snapshot_path} after {self.epochs_run} epochs")

    def train(self, total_epochs: int) -> None:
        """Train until ``total_epochs`` are run, those of earlier runs included."""
        epochs = range(self.epochs_run, total_epochs)
        no_bar = None if self.env.rank == 0 else True  # None: terminals only
        for epoch in tqdm(epochs, unit="epoch", disable=no_bar):
            self.run_epoch(epoch)
            self.epochs_run = epoch + 1
            if self.epochs_run % self.save_every == 0:
                self.save_snapshot()


def report(trainer: Trainer, test_set: Dataset, args: argparse.Namespace) -> None:
    """Print the numbers of the run, and write them where ``--metrics`` says."""
    env = trainer.env
    counts = count_correct(
        trainer.model, test_set, trainer.device, env.rank, env.world_size
    )
    # every rank must reach this line: [correct, total] of a share -> of the test set
    counts = torch.tensor(counts, device=trainer.device)
    dist.all_reduce(counts)
    correct, total = counts.tolist()
    if env.rank != 0:
        return
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
            world_size=env.world_size,
            epochs=trainer.epochs_run,
        )


def parse_arguments() -> argparse.Namespace:
    """The command line; the same on every rank."""
    parser = training_parser(__doc__)
    parser.add_argument(
        "--profile", action="store_true", help="show where the time of a step goes"
    )
    return parser.parse_args()


def train_and_report(
    args: argparse.Namespace, env: TorchrunEnv, device: torch.device
) -> None:
    """What lies between the first and the last line of the process group."""
    torch.manual_seed(SEED)
    train_set, test_set = load_digits_split()
    train_loader = make_loader(train_set, args.batch_size)
    model = make_model(DROPOUT).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    if env.rank == 0:
        say(
            f"{len(train_set)} training images on {env.world_size} ranks, "
            f"each on {describe(device)}, backend {dist.get_backend()}, "
            f"learning rate {args.learning_rate}, snapshot {args.snapshot}"
        )
    trainer = Trainer(model, optimizer, train_loader, device, env, args)
    trainer.train(args.total_epochs)
    report(trainer, test_set, args)


@one_line_errors
def main() -> None:
    args = parse_arguments()
    env = read_torchrun_env()
    if env.rank == 0:  # the only one that writes
        check_output_file(args.snapshot, "--snapshot")
        if args.metrics:
            check_output_file(args.metrics, "--metrics")
    device = choose_device(env.local_rank)
    dist.init_process_group(choose_backend(device))
    # in a function of its own: DDP must be gone before the process group goes
    train_and_report(args, env, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
