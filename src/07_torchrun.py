"""Train in ranks that torchrun starts, and restarts when one of them dies.

Run from the folder of the workshop:

    torchrun --standalone --nproc-per-node=2 src/07_torchrun.py 10 5
    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1    # restarts need it
    torchrun --standalone --nproc-per-node=2 --max-restarts=3 src/07_torchrun.py 10 5
"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from common import data, distributed, process_group, snapshot

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def setup() -> torch.device:
    """Take this rank's device and join the other ranks."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        start = "torchrun --standalone --nproc-per-node=2 SCRIPT ..."
        raise distributed.BadInput(f"torchrun did not start this process: {start}")
    # every rank must reach this line; torchrun has set MASTER_ADDR and all the rest
    return process_group.join(int(os.environ["LOCAL_RANK"]))


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
    # else its first step would round otherwise than the later ones: lesson 06
    image, _ = train_set[:1]  # [1, 1, 8, 8]
    distributed.settle_buckets(ddp_model, image.to(device))
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
def main() -> None:
    config = data.parse_training(__doc__)
    train(config, setup())  # when it returns, DDP is gone
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
