"""Train on all devices of many nodes: one process for each, started by this program.

Run from the folder of the workshop, once on each node; HOST is the first of them:

    export NNODES=2 MASTER_ADDR=HOST MASTER_PORT=29500
    NODE_RANK=0 python src/08_multinode_spawn.py 10 5 --nprocs 4    # on HOST
    NODE_RANK=1 python src/08_multinode_spawn.py 10 5 --nprocs 4    # on the other node
"""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from common import data, distributed, launchers, process_group, snapshot

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def read_node() -> tuple[int, int]:
    """(node rank, number of nodes); set all four variables on each node.

    Raises:
        BadInput: one is missing or impossible.
    """
    names = ("NODE_RANK", "NNODES", "MASTER_ADDR", "MASTER_PORT")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        needs = "each node needs its NODE_RANK, NNODES, and where node 0 listens"
        raise distributed.BadInput(f"{', '.join(missing)} not set: {needs}")
    node_rank = launchers.read_number("NODE_RANK")
    nodes = launchers.read_number("NNODES")
    if node_rank >= nodes:
        raise distributed.BadInput(
            f"NODE_RANK={node_rank} must be smaller than NNODES={nodes}: nodes are "
            "numbered from 0"
        )
    return node_rank, nodes


def rank_of(local_rank: int, node_rank: int, nprocs: int) -> int:
    """The rank among those of all nodes, if each node starts ``nprocs``."""
    # the ranks of earlier nodes are counted first
    return node_rank * nprocs + local_rank


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


def train(config: data.TrainingConfig, device: torch.device, place: str) -> None:
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
    for epoch in run.epochs_left():
        loader.sampler.set_epoch(epoch)
        # from epoch and rank: ranks drop other features, a resumed run the same again
        distributed.seed_rank(SEED, epoch)
        shape = f"Batch size {config.batch_size} | Steps {len(loader)}"
        distributed.log(f"[{place}] Epoch {epoch} | {shape}", every_rank=True)
        loss_sum = run_epoch(ddp_model, optimizer, loader, device)
        # every rank must reach this line: the sum over the ranks, 4 bytes
        dist.all_reduce(loss_sum)
        images = len(loader.sampler)  # of each rank
        run.end_epoch(loss_sum.item() / (images * dist.get_world_size()), images)
    data.report(run, model, test_set)


@distributed.one_line_errors
def run_rank(local_rank: int, nprocs: int, config: data.TrainingConfig) -> None:
    """What each process does; ``mp.spawn`` gives it its local rank."""
    node_rank, nodes = read_node()
    rank = rank_of(local_rank, node_rank, nprocs)
    # every rank must reach this line; MASTER_ADDR and MASTER_PORT say where to connect
    device = process_group.join(local_rank, rank=rank, world_size=nodes * nprocs)
    place = f"node {node_rank} local {local_rank} rank {rank}"
    train(config, device, place)  # when it returns, DDP is gone
    dist.destroy_process_group()


@distributed.one_line_errors
def main() -> None:
    config = data.parse_training(__doc__, nprocs="ranks of each node")
    read_node()  # before there are processes: bad input is refused once
    nprocs = config.nprocs or distributed.count_accelerators() or 2
    mp.spawn(run_rank, args=(nprocs, config), nprocs=nprocs)


if __name__ == "__main__":
    main()
