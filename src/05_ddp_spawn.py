"""Train on all devices of one machine: one process for each, started by this program.

Run from the folder of the workshop:

    python src/05_ddp_spawn.py 10 5 --nprocs 4    # default: one per GPU
"""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from common import data, distributed, snapshot

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches of this rank's share; the sampler pads, so all shares are equal."""
    sampler = DistributedSampler(dataset, shuffle=True, seed=SEED)
    return DataLoader(dataset, batch_size, sampler=sampler)


def run_epoch(
    ddp_model: DDP, optimizer: Optimizer, loader: DataLoader, device: torch.device
) -> torch.Tensor:
    """One pass over the loader's images; the sum of their losses."""
    ddp_model.train()
    # on the device: .item() in every step would wait for it
    loss_sum = torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(ddp_model(images), labels)  # the mean over the batch
        loss.backward()  # gradients become the mean over the ranks in here
        optimizer.step()
        loss_sum += loss.detach() * len(labels)
    return loss_sum


def train(config: data.TrainingConfig, device: torch.device) -> None:
    """Train the epochs that are left; the DDP object is gone when this returns."""
    torch.manual_seed(SEED)
    train_set, test_set = data.load_digits_split()
    distributed.log(
        f"{len(train_set)} training images on {distributed.describe_world(device)}, "
        f"learning rate {config.learning_rate}, snapshot {config.snapshot}"
    )
    loader = make_loader(train_set, config.batch_size)
    model = data.make_model(DROPOUT, config.width).to(device)
    optimizer = SGD(model.parameters(), config.learning_rate, momentum=0.9)
    run = snapshot.Run(config, model=model, optimizer=optimizer)
    devices = None if device.type == "cpu" else [device]
    # every rank must reach this line: rank 0's weights are sent to all
    ddp_model = DDP(model, devices)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for epoch in run.epochs_left():
        loader.sampler.set_epoch(epoch)
        # from epoch and rank: ranks drop other features, a resumed run the same again
        distributed.seed_rank(SEED, epoch)
        shape = f"Batch size {config.batch_size} | Steps {len(loader)}"
        distributed.log(f"[rank {rank} of {world_size}] Epoch {epoch} | {shape}")
        loss_sum = run_epoch(ddp_model, optimizer, loader, device)
        # every rank must reach this line: the sum over the ranks, 4 bytes
        dist.all_reduce(loss_sum)
        images = len(loader.sampler)  # of each rank
        run.end_epoch(loss_sum.item() / (images * dist.get_world_size()), images)
    data.report(run, model, test_set)


@distributed.one_line_errors
def run_rank(rank: int, world_size: int, config: data.TrainingConfig) -> None:
    """What each process does; ``mp.spawn`` gives it its rank."""
    device = distributed.choose_device(rank)  # here, rank and local rank are equal
    backend = dist.get_default_backend_for_device(device)
    gpu = None if device.type == "cpu" else device  # NCCL connects to it at once
    # every rank must reach this line; MASTER_ADDR and MASTER_PORT say where to connect
    dist.init_process_group(backend, rank=rank, world_size=world_size, device_id=gpu)
    train(config, device)  # when it returns, DDP is gone
    dist.destroy_process_group()


@distributed.one_line_errors
def main() -> None:
    config = data.parse_training(__doc__, nprocs="ranks (default: 1 per device)")
    world_size = distributed.prepare_spawn(config.nprocs)
    mp.spawn(run_rank, args=(world_size, config), nprocs=world_size)


if __name__ == "__main__":
    main()
