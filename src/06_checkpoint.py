"""Stop a run anywhere, start it again, and get the same weights bit for bit.

Run from the folder of the workshop:

    python src/06_checkpoint.py 10 5 --save-every-steps 7    # also inside epochs
"""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim import SGD, lr_scheduler
from torch.utils.data import DataLoader, Dataset, Subset

from common import data, distributed, process_group, snapshot

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def rest_of_share(size: int, epoch: int, done: int, rank: int, ranks: int) -> list[int]:
    """The indices, below ``size``, of the images that a rank still has to use."""
    generator = torch.Generator().manual_seed(SEED + epoch)
    order = torch.randperm(size, generator=generator).tolist()
    rest = order[done:]  # all ranks together have used the others
    padding = -len(rest) % ranks  # so that all ranks make equally many steps
    return (rest + order[:padding])[rank::ranks]  # dealt out like cards


def make_loader(dataset: Dataset, batch_size: int, epoch: int, done: int) -> DataLoader:
    """Batches of what this rank still has to use in an epoch."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    share = rest_of_share(len(dataset), epoch, done, rank, world_size)
    # not the global one: each loop over a loader draws a number, to seed its workers
    own = torch.Generator().manual_seed(distributed.rank_seed(SEED, epoch))
    return DataLoader(Subset(dataset, share), batch_size, generator=own)


class RankState:
    """What differs from rank to rank: random numbers of its device, losses so far."""

    def __init__(self, device: torch.device):
        self.random = torch if device.type == "cpu" else torch.get_device_module(device)
        # on the device: .item() in every step would wait for it
        self.loss_sum = torch.zeros((), device=device)

    def state_dict(self) -> list[dict] | None:
        """On rank 0 the state of all ranks, elsewhere None; all ranks call this."""
        own = {"random": self.random.get_rng_state(), "loss_sum": self.loss_sum.item()}
        ranks = [own] * dist.get_world_size() if dist.get_rank() == 0 else None
        # every rank must reach this line: about 5 kB of each are sent to rank 0
        dist.gather_object(own, ranks)
        return ranks

    def load_state_dict(self, ranks: list[dict]) -> None:
        """Restore this rank's state; on a different world size, there is none."""
        rank, world_size = dist.get_rank(), dist.get_world_size()
        if len(ranks) == world_size:
            self.loss_sum.fill_(ranks[rank]["loss_sum"])
            self.random.set_rng_state(ranks[rank]["random"])
        else:
            torch.manual_seed(SEED + rank)
            self.loss_sum.fill_(sum(state["loss_sum"] for state in ranks) / world_size)


def run_epoch(run: snapshot.Run, ddp_model: DDP, loader: DataLoader) -> None:
    """One pass over the training set, or the rest of it."""
    ddp_model.train()
    optimizer, every = run.parts["optimizer"], run.config.save_every_steps
    loss_sum, counters = run.parts["ranks"].loss_sum, run.counters
    for images, labels in loader:
        images, labels = images.to(loss_sum.device), labels.to(loss_sum.device)
        optimizer.zero_grad()
        loss = F.cross_entropy(ddp_model(images), labels)  # the mean over the batch
        loss.backward()  # gradients become the mean over the ranks in here
        optimizer.step()
        loss_sum += loss.detach() * len(labels)
        counters["images_done"] += len(labels) * dist.get_world_size()
        counters["steps_run"] += 1
        if every and counters["steps_run"] % every == 0:
            run.save()


def train(config: data.TrainingConfig, device: torch.device) -> None:
    """Train the epochs that are left; the DDP object is gone when this returns."""
    torch.manual_seed(SEED)
    train_set, test_set = data.load_digits_split()
    distributed.log(
        f"{len(train_set)} training images on {distributed.describe_world(device)}, "
        f"learning rate {config.learning_rate}, snapshot {config.snapshot}"
    )
    model = data.make_model(DROPOUT, config.width).to(device)
    optimizer = SGD(model.parameters(), config.learning_rate, momentum=0.9)
    scheduler = lr_scheduler.ExponentialLR(optimizer, gamma=0.97)  # x 0.97 an epoch
    ranks = RankState(device)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    run = snapshot.Run(config, **parts, ranks=ranks)
    devices = None if device.type == "cpu" else [device]
    # every rank must reach this line: rank 0's weights are sent to all
    ddp_model = DDP(model, devices)
    # else its first step would round otherwise than the later ones: lesson 06
    image, _ = train_set[:1]  # [1, 1, 8, 8]
    distributed.settle_buckets(ddp_model, image.to(device))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for epoch in run.epochs_left():
        done = run.counters["images_done"]
        loader = make_loader(train_set, config.batch_size, epoch, done)
        if done == 0:  # else the snapshot has set both
            distributed.seed_rank(SEED, epoch)
            ranks.loss_sum.zero_()
        shape = f"Batch size {config.batch_size} | Steps {len(loader)}"
        distributed.log(f"[rank {rank} of {world_size}] Epoch {epoch} | {shape}")
        run_epoch(run, ddp_model, loader)
        scheduler.step()
        dist.all_reduce(ranks.loss_sum)  # every rank must reach this line: 4 bytes
        loss = ranks.loss_sum.item() / run.counters["images_done"]
        run.end_epoch(loss, len(loader.dataset))
    data.report(run, model, test_set)


@distributed.one_line_errors
def run_rank(rank: int, world_size: int, config: data.TrainingConfig) -> None:
    """What each process does; ``mp.spawn`` gives it its rank."""
    # every rank must reach this line; here, rank and local rank are equal
    device = process_group.join(rank, rank=rank, world_size=world_size)
    train(config, device)  # when it returns, DDP is gone
    dist.destroy_process_group()


@distributed.one_line_errors
def main() -> None:
    more = {"nprocs": "default: 1 per device", "save_every_steps": "save more often"}
    config = data.parse_training(__doc__, **more)
    world_size = distributed.prepare_spawn(config.nprocs)
    mp.spawn(run_rank, args=(world_size, config), nprocs=world_size)


if __name__ == "__main__":
    main()
