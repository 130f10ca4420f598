"""Train in ranks that torchrun starts, and starts again when one of them dies.

Run from the folder of the workshop:

    torchrun --standalone --nproc-per-node=2 src/07_torchrun.py 10 5
    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1    # restarts with gloo need it
    torchrun --standalone --nproc-per-node=2 --max-restarts=3 src/07_torchrun.py 10 5
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from common import data, distributed, resume, snapshot

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def setup() -> torch.device:
    """Take this rank's device and join the other ranks."""
    device = distributed.choose_device(distributed.torchrun_place().local_rank)
    # every rank must reach this line; torchrun has set MASTER_ADDR and all the rest
    dist.init_process_group(distributed.choose_backend(device))
    warn_of_shared_store()
    return device


def warn_of_shared_store() -> None:
    """Say so if ranks that torchrun starts again could not connect.

    By default they connect through torchrun's own store, which outlives them. With
    gloo, new ranks may find the addresses of dead ones. A rank can only warn of it.
    """
    may_restart = os.environ["TORCHELASTIC_MAX_RESTARTS"] != "0"
    shared = os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "True"
    if may_restart and shared and dist.get_backend() == "gloo":
        distributed.log(
            "Warning: with gloo, restarts may fail (Connection refused): "
            "export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 before torchrun"
        )


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches of this rank's share; the sampler pads, so that all are of one size."""
    sampler = data.ResumableSampler(dataset, shuffle=True, seed=SEED)
    # a generator of its own: each start of a loader draws a number, even to resume
    return DataLoader(dataset, batch_size, sampler=sampler, generator=torch.Generator())


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
        self.scheduler = ExponentialLR(self.optimizer, gamma=0.97)  # x 0.97 an epoch
        self.epochs_run = 0
        self.steps_run = 0  # of all epochs
        self.images_done = 0  # of this epoch, by all ranks, padding included
        # of this epoch; on the device: .item() in every step would wait for it
        self.loss_sum = torch.zeros((), device=device)
        self.not_saved = ""  # why the latest snapshot is not on the disk
        self.losses: list[float] = []  # mean of each epoch trained in this run
        self.rates: list[float] = []  # images per second of each
        snapshot.resume(self, args.snapshot)
        # every rank must reach this line: rank 0's weights are sent to all
        self.ddp_model = DDP(self.model, None if device.type == "cpu" else [device])
        resume.settle_buckets(self.ddp_model, torch.zeros(1, 1, 8, 8, device=device))

    def run_batch(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """One step: images [B, 1, 8, 8], labels [B]; the mean loss of the batch."""
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.ddp_model(images), labels)
        loss.backward()  # gradients become the mean over the ranks in here
        self.optimizer.step()
        return loss.detach()

    def run_epoch(self, epoch: int) -> None:
        """One pass over the training set, or the rest of it."""
        self.train_loader.sampler.set_position(epoch, self.images_done)
        if self.images_done == 0:  # else the snapshot has set the random numbers
            torch.manual_seed(SEED + epoch * dist.get_world_size() + dist.get_rank())
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
            self.images_done += len(labels) * dist.get_world_size()
            self.steps_run += 1
            every = self.args.save_every_steps
            if every and self.steps_run % every == 0:
                self.not_saved = snapshot.save(self, self.args.snapshot)
        self.scheduler.step()
        # every rank must reach this line: the sum over the ranks, 4 bytes
        dist.all_reduce(self.loss_sum)
        self.losses.append(self.loss_sum.item() / self.images_done)
        seconds = time.perf_counter() - start
        self.rates.append(len(self.train_loader.sampler) / seconds)
        self.loss_sum.zero_()
        self.images_done = 0

    def state_dict(self) -> dict:
        """Everything that the next step depends on; all ranks call this together."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "epochs_run": self.epochs_run,
            "steps_run": self.steps_run,
            "images_done": self.images_done,
            "ranks": resume.gather_states(self.device, self.loss_sum),
        }

    def load_state_dict(self, state: dict) -> None:
        """Restore what :meth:`state_dict` returned.

        On another world size the random numbers start again from a seed; weights,
        optimizer, learning rate and images to come are as saved.
        """
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epochs_run = state["epochs_run"]
        self.steps_run = state["steps_run"]
        self.images_done = state["images_done"]
        seed = SEED + self.steps_run  # for another world size
        resume.restore_state(state["ranks"], self.device, self.loss_sum, seed)

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
    """What each process does; torchrun has started it."""
    args = data.parse_training(__doc__, resume.add_save_options)
    not_saved = train_and_report(args, setup())  # when it returns, DDP is gone
    dist.destroy_process_group()
    snapshot.check_saved(not_saved)


if __name__ == "__main__":
    main()
