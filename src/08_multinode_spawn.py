"""Train on all devices of many nodes: one process for each, started by this program.

Run from the folder of the workshop, once on each node; HOST is the first of them:

    export NNODES=2 MASTER_ADDR=HOST MASTER_PORT=29500
    NODE_RANK=0 python src/08_multinode_spawn.py 10 5 --nprocs 4    # on HOST
    NODE_RANK=1 python src/08_multinode_spawn.py 10 5 --nprocs 4    # on the other node
"""

import argparse
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from tqdm import tqdm

from common import data, distributed, snapshot, spawn

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def place_of(local_rank: int, node: spawn.Node) -> distributed.Place:
    """This process among those of all nodes, by arithmetic."""
    # each node starts as many: all those of the nodes before this one come first
    rank = node.rank * node.nprocs + local_rank
    return distributed.Place(rank, local_rank, node.rank)


def setup(place: distributed.Place, world_size: int) -> torch.device:
    """Take one of this node's devices and join the ranks of all nodes."""
    device = distributed.choose_device(place.local_rank)  # no node has one per rank
    backend = distributed.choose_backend(device)
    # every rank must reach this line; MASTER_ADDR and MASTER_PORT say where to connect
    dist.init_process_group(backend, rank=place.rank, world_size=world_size)
    return device


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches of this rank's share; the sampler pads, so that all are of one size."""
    sampler = DistributedSampler(dataset, shuffle=True, seed=SEED)
    return DataLoader(dataset, batch_size, sampler=sampler)


class Trainer:
    """A model, what trains it, and how far the run has come."""

    def __init__(
        self,
        args: argparse.Namespace,
        train_set: Dataset,
        device: torch.device,
        place: distributed.Place,
    ):
        self.args, self.device, self.place = args, device, place
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
        # every rank must reach this line: rank 0's weights are sent to all
        self.ddp_model = DDP(self.model, None if device.type == "cpu" else [device])

    def run_batch(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """One step: images [B, 1, 8, 8], labels [B]; the mean loss of the batch."""
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.ddp_model(images), labels)
        loss.backward()  # gradients become the mean over the ranks in here
        self.optimizer.step()
        return loss.detach()

    def run_epoch(self, epoch: int) -> None:
        """One pass over the training set."""
        self.train_loader.sampler.set_epoch(epoch)
        # from epoch and rank: ranks drop other features, a resumed run the same again
        torch.manual_seed(SEED + epoch * dist.get_world_size() + dist.get_rank())
        batch_size, steps = self.train_loader.batch_size, len(self.train_loader)
        distributed.log(
            f"[node {self.place.node_rank} local {self.place.local_rank} "
            f"rank {self.place.rank}] Epoch {epoch} | "
            f"Batch size {batch_size} | Steps {steps}",
            every_rank=True,  # one sees that all nodes take part
        )
        start = time.perf_counter()
        self.model.train()
        for images, labels in self.train_loader:
            images, labels = images.to(self.device), labels.to(self.device)
            self.loss_sum += self.run_batch(images, labels) * len(labels)
            self.images_done += len(labels) * dist.get_world_size()
        # every rank must reach this line: the sum over the ranks, 4 bytes
        dist.all_reduce(self.loss_sum)
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
        }

    def load_state_dict(self, state: dict) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epochs_run = state["epochs_run"]

    def train(self) -> str:
        """Train what is left of all epochs; returns why the end is not saved, or ""."""
        epochs = range(self.epochs_run, self.args.total_epochs)
        for epoch in tqdm(epochs, unit="epoch", disable=distributed.no_bar()):
            self.run_epoch(epoch)
            self.epochs_run = epoch + 1
            if self.epochs_run % self.args.save_every == 0:
                self.not_saved = snapshot.save(self, self.args.snapshot)
        return self.not_saved


def train_and_report(
    args: argparse.Namespace, device: torch.device, place: distributed.Place
) -> str:
    """Train, print the results; returns why the last snapshot is not saved, or ""."""
    torch.manual_seed(SEED)
    train_set, test_set = data.load_digits_split()
    distributed.log(
        f"{len(train_set)} training images on {distributed.describe_world(device)}, "
        f"learning rate {args.learning_rate}, snapshot {args.snapshot}"
    )
    trainer = Trainer(args, train_set, device, place)
    not_saved = trainer.train()
    data.report(trainer, test_set, args)
    return not_saved


@distributed.one_line_errors
def run_rank(local_rank: int, node: spawn.Node, args: argparse.Namespace) -> None:
    """What each process does; ``mp.spawn`` gives it its local rank."""
    place = place_of(local_rank, node)
    device = setup(place, node.count * node.nprocs)
    not_saved = train_and_report(args, device, place)  # when it returns, DDP is gone
    dist.destroy_process_group()
    snapshot.check_saved(not_saved)


@distributed.one_line_errors
def main() -> None:
    args = data.parse_training(__doc__, spawn.add_spawn_options)
    node = spawn.choose_node(args)
    mp.spawn(run_rank, args=(node, args), nprocs=node.nprocs)


if __name__ == "__main__":
    main()
