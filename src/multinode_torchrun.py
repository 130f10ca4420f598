"""Train in many processes, on one or many nodes, started by torchrun.

Run from the folder of the workshop. On one machine, 2 processes:

    torchrun --standalone --nproc-per-node=2 src/multinode_torchrun.py 10 5

On two nodes with 4 processes each, the same command on both (HOST is the first):

    torchrun --nnodes=2 --nproc-per-node=4 --rdzv-id=1 --rdzv-backend=c10d \\
        --rdzv-endpoint=HOST:29500 src/multinode_torchrun.py 10 5
"""

import argparse
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

import command_line
from command_line import (
    check_output_file,
    positive_int,
    training_parser,
    write_metrics,
)
from devices import choose_backend, choose_device, describe
from digits import count_correct_together, load_digits_split, make_model
from dist_env import DistEnv
from one_voice import is_rank_0, no_bar, one_line_errors, say
from random_state import get_random_state, set_random_state
from resumable_sampler import ResumableSampler
from snapshots import SnapshotError, read_snapshot, restoring_from, write_snapshot
from step_timer import StepTimer
from torchrun_env import get_torchrun_env, warn_of_shared_store

SEED = 0
DROPOUT = 0.1  # each rank draws its own: see Trainer.run_epoch


def setup(env: DistEnv) -> torch.device:
    """Take this rank's device and meet the other ranks."""
    device = choose_device(env.local_rank)
    # every rank must reach this line; torchrun has set MASTER_ADDR and all the rest
    dist.init_process_group(choose_backend(device))
    return device


def cleanup() -> None:
    """Leave the other ranks. DDP must be gone by now: its end needs the group."""
    dist.destroy_process_group()


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches of this rank's share, in an order that is new in every epoch.

    ``set_position`` chooses the order. All shares are of one size: where the images
    do not divide evenly, the sampler repeats some, or ranks would wait for ever.
    """
    sampler = ResumableSampler(dataset, shuffle=True, seed=SEED)
    # a generator of its own: each start of a loader draws a number, even to resume
    return DataLoader(dataset, batch_size, sampler=sampler, generator=torch.Generator())


class Trainer:
    """A model, what trains it, and how far the training has come."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        train_loader: DataLoader,
        device: torch.device,
        env: DistEnv,
        args: argparse.Namespace,
    ):
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader
        self.device = device
        self.env = env
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.save_every = args.save_every
        self.snapshot_path = args.snapshot
        self.scheduler = ExponentialLR(optimizer, gamma=0.97)  # each epoch 3 % slower
        self.save_every_steps = args.save_every_steps
        self.epochs_run = 0
        self.steps_run = 0  # of all epochs
        self.images_done = 0  # of this epoch, by all ranks, padding included
        # of this epoch and rank; on the device: .item() in every step would wait for it
        self.loss_sum = torch.zeros((), device=device)
        self.not_saved = ""  # why the latest snapshot is not on the disk
        self.timer = StepTimer(device, enabled=args.profile)
        self.losses: list[float] = []  # mean of each epoch trained in this run
        self.epoch_seconds: list[float] = []
        self.load_snapshot()
        # every rank must reach this line: rank 0's weights are sent to all
        self.ddp_model = DDP(model, None if device.type == "cpu" else [device])
        self.settle_buckets()

    def settle_buckets(self) -> None:
        """Let DDP arrange its buckets, as it does once, after the first backward.

        The sum over three or more ranks is rounded in an order that depends on where
        in a bucket a gradient lies. Without this, the first step of a resumed run
        would not be bit-equal to the same step of a run that never stopped.
        """
        self.model.eval()  # draws no random numbers; run_epoch calls train()
        self.ddp_model(torch.zeros(1, 1, 8, 8, device=self.device)).sum().backward()

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
        """One pass over the training set, or the rest of it, all ranks together."""
        self.train_loader.sampler.set_position(epoch, self.images_done)
        batch_size, steps = self.train_loader.batch_size, len(self.train_loader)
        command_line.say(  # on every rank: one sees that all nodes take part
            f"[node {self.env.node_rank} local {self.env.local_rank} "
            f"rank {self.rank}] Epoch {epoch} | "
            f"Batch size {batch_size} | Steps {steps}"
        )
        start, done_before = time.perf_counter(), self.images_done
        if self.images_done == 0:  # else the snapshot has set both
            torch.manual_seed(SEED + epoch * self.world_size + self.rank)
            self.loss_sum.zero_()
        self.model.train()
        for images, labels in self.timer.each("data", self.train_loader):
            images, labels = images.to(self.device), labels.to(self.device)
            self.loss_sum += self.run_batch(images, labels) * len(labels)
            self.images_done += len(labels) * self.world_size
            self.steps_run += 1
            if self.save_every_steps and self.steps_run % self.save_every_steps == 0:
                self.save_snapshot()
        self.scheduler.step()
        # every rank must reach this line: the sum over the ranks, 4 bytes
        dist.all_reduce(self.loss_sum)
        share = 1 - done_before / self.images_done  # of the epoch, in this run
        if share > 0:
            self.losses.append(self.loss_sum.item() / self.images_done)
            self.epoch_seconds.append((time.perf_counter() - start) / share)
        self.images_done = 0

    def save_snapshot(self) -> None:
        """Everything that the next step depends on; all ranks call this together."""
        mine = {
            "random": get_random_state(self.device),
            "loss_sum": self.loss_sum.item(),
        }
        ranks = [None] * self.world_size if is_rank_0() else None
        # every rank must reach this line: about 5 kB of each go to rank 0
        dist.gather_object(mine, ranks)
        snapshot = {
            "model": self.model.state_dict(),  # not ddp_model's: no "module." in keys
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "epochs_run": self.epochs_run,
            "steps_run": self.steps_run,
            "images_done": self.images_done,
            "ranks": ranks,
        }
        if is_rank_0():
            self.not_saved = ""
            try:
                write_snapshot(snapshot, self.snapshot_path)
                say(f"Snapshot of {self.steps_run} steps in {self.snapshot_path}")
            except SnapshotError as error:  # no reason to lose the training, too
                self.not_saved = str(error)
                say(f"Going on without a snapshot: {error}")
        dist.barrier()  # whoever passes this line can read what rank 0 wrote

    def load_snapshot(self) -> None:
        """Go on as if the run that saved the snapshot had never stopped.

        Rank 0 reads and sends: the other nodes need not see the file. On another
        world size the random numbers start anew; weights, optimizer, learning rate
        and images to come are as saved.
        """
        box = [None, None]  # the snapshot and an error, of which one or none is there
        if is_rank_0() and self.snapshot_path.exists():
            try:
                box[0] = read_snapshot(self.snapshot_path)
            except SnapshotError as error:
                box[1] = str(error)
        # every rank must reach this line; as many bytes as the file to each rank
        dist.broadcast_object_list(box, src=0)
        snapshot, error = box
        if error:
            raise SnapshotError(error)
        if snapshot is None:
            return
        with restoring_from(self.snapshot_path):
            self.model.load_state_dict(snapshot["model"])
            self.optimizer.load_state_dict(snapshot["optimizer"])
            self.scheduler.load_state_dict(snapshot["scheduler"])
            self.epochs_run = snapshot["epochs_run"]
            self.steps_run = snapshot["steps_run"]
            self.images_done = snapshot["images_done"]
            losses = [state["loss_sum"] for state in snapshot["ranks"]]
            if len(losses) == self.world_size:
                set_random_state(snapshot["ranks"][self.rank]["random"], self.device)
                self.loss_sum.fill_(losses[self.rank])
            else:
                torch.manual_seed(SEED + self.steps_run * self.world_size + self.rank)
                self.loss_sum.fill_(sum(losses) / self.world_size)
        say(f"Resuming from {self.snapshot_path} after {self.steps_run} steps")

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
    """The command line; the same on every rank."""
    parser = training_parser(__doc__)
    parser.add_argument(
        "--profile", action="store_true", help="show where the time of a step goes"
    )
    parser.add_argument(
        "--save-every-steps",
        metavar="STEPS",
        type=positive_int,
        help="save inside epochs, too, after this many steps (default: never)",
    )
    return parser.parse_args()


def train_and_report(
    args: argparse.Namespace, env: DistEnv, device: torch.device
) -> str:
    """What happens between setup and cleanup; returns what could not be saved."""
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
    warn_of_shared_store()
    trainer = Trainer(model, optimizer, train_loader, device, env, args)
    trainer.train(args.total_epochs)
    report(trainer, test_set, args)
    return trainer.not_saved


@one_line_errors
def main() -> None:
    """What each process does, on each node; torchrun has started it."""
    args = parse_arguments()
    env = get_torchrun_env()
    if env.rank == 0:  # the only one that writes; the others may not see the folder
        check_output_file(args.snapshot, "--snapshot")
        if args.metrics:
            check_output_file(args.metrics, "--metrics")
    device = setup(env)
    # in a function of its own: when it returns, DDP is gone
    not_saved = train_and_report(args, env, device)
    cleanup()
    if not_saved:
        raise SnapshotError(not_saved)


if __name__ == "__main__":
    main()
