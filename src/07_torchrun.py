"""Train in ranks that torchrun starts, and starts again when one of them dies.

Run from the folder of the workshop:

    torchrun --standalone --nproc-per-node=2 src/07_torchrun.py 10 5
    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1    # restarts with gloo need it
    torchrun --standalone --nproc-per-node=2 --max-restarts=3 src/07_torchrun.py 10 5
"""

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from common.cli import parse_training
from common.data import ResumableSampler, load_digits_split, make_model
from common.devices import choose_backend, choose_device
from common.distributed import DistEnv
from common.logging import (
    describe_world,
    is_rank_0,
    log,
    no_bar,
    one_line_errors,
    short_name,
)
from common.measure import StepTimer, report
from common.rendezvous import get_torchrun_env, warn_of_shared_store
from common.resume import add_save_options, gather_states, restore_state, settle_buckets
from common.snapshot import (
    check_saved,
    progress,
    read_snapshot,
    restoring_from,
    save_or_go_on,
)

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


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
    """Batches of this rank's share; the sampler pads, so that all are of one size."""
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
        args: argparse.Namespace,
    ):
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader
        self.device = device
        self.scheduler = ExponentialLR(optimizer, gamma=0.97)  # each epoch 3 % slower
        self.save_every = args.save_every
        self.save_every_steps = args.save_every_steps
        self.snapshot_path = args.snapshot
        self.not_saved = ""  # why the latest snapshot is not on the disk
        self.epochs_run = 0
        self.steps_run = 0  # of all epochs
        self.images_done = 0  # of this epoch, by all ranks, padding included
        # of this epoch; on the device: .item() in every step would wait for it
        self.loss_sum = torch.zeros((), device=device)
        self.timer = StepTimer(device, enabled=args.profile)
        self.losses: list[float] = []  # mean of each epoch trained in this run
        self.rates: list[float] = []  # images per second of each
        if self.snapshot_path.exists():
            self.load_snapshot()
        # every rank must reach this line: rank 0's weights are sent to all
        self.ddp_model = DDP(model, None if device.type == "cpu" else [device])
        settle_buckets(self.ddp_model, torch.zeros(1, 1, 8, 8, device=device))

    def run_batch(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """One step: images [B, 1, 8, 8], labels [B]; the mean loss of the batch."""
        self.optimizer.zero_grad()
        with self.timer("forward"):
            loss = F.cross_entropy(self.ddp_model(images), labels)
        with self.timer("backward"):
            loss.backward()  # gradients become the mean over the ranks in here
        with self.timer("step"):
            self.optimizer.step()
        return loss.detach()

    def run_epoch(self, epoch: int) -> None:
        """One pass over the training set, or the rest of it."""
        self.train_loader.sampler.set_position(epoch, self.images_done)
        if self.images_done == 0:  # else the snapshot has set the random numbers
            torch.manual_seed(SEED + epoch * dist.get_world_size() + dist.get_rank())
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
            self.images_done += len(labels) * dist.get_world_size()
            self.steps_run += 1
            if self.save_every_steps and self.steps_run % self.save_every_steps == 0:
                self.save_snapshot()
        self.scheduler.step()
        # every rank must reach this line: the sum over the ranks, 4 bytes
        dist.all_reduce(self.loss_sum)
        self.losses.append(self.loss_sum.item() / self.images_done)
        seconds = time.perf_counter() - start
        self.rates.append(len(self.train_loader.sampler) / seconds)
        self.loss_sum.zero_()
        self.images_done = 0

    def save_snapshot(self) -> None:
        """Everything that the next step depends on; all ranks call this together."""
        snapshot = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "epochs_run": self.epochs_run,
            "steps_run": self.steps_run,
            "images_done": self.images_done,
            "ranks": gather_states(self.device, self.loss_sum),  # all ranks together
        }
        if is_rank_0():
            self.not_saved = save_or_go_on(snapshot, self.snapshot_path)
        dist.barrier()  # whoever passes this line can read what rank 0 wrote

    def load_snapshot(self) -> None:
        """Go on as if the run that saved the snapshot had never stopped.

        Every rank reads the file. On another world size the random numbers start
        anew; weights, optimizer, learning rate and images to come are as saved.
        """
        snapshot = read_snapshot(self.snapshot_path)
        with restoring_from(self.snapshot_path):
            self.model.load_state_dict(snapshot["model"])
            self.optimizer.load_state_dict(snapshot["optimizer"])
            self.scheduler.load_state_dict(snapshot["scheduler"])
            self.epochs_run = snapshot["epochs_run"]
            self.steps_run = snapshot["steps_run"]
            self.images_done = snapshot["images_done"]
            seed = SEED + self.steps_run  # for another world size
            restore_state(snapshot["ranks"], self.device, self.loss_sum, seed)
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
    warn_of_shared_store()
    trainer = Trainer(model, optimizer, train_loader, device, args)
    trainer.train(args.total_epochs)
    report(trainer, test_set, args)
    return trainer.not_saved


@one_line_errors
def main() -> None:
    """What each process does; torchrun has started it."""
    args = parse_training(__doc__, add_save_options)
    env = get_torchrun_env()
    device = setup(env)
    not_saved = train_and_report(args, device)  # when it returns, DDP is gone
    cleanup()
    check_saved(not_saved)


if __name__ == "__main__":
    main()
