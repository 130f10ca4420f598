"""Train in many processes, on many nodes, started by srun or mpirun: no torchrun.

Run from the folder of the workshop, inside a job that says where rank 0 listens:

    export MASTER_ADDR=HOST MASTER_PORT=29500
    srun --nodes=2 --ntasks-per-node=2 python src/09_srun.py 10 5
    mpirun -np 4 -x MASTER_ADDR -x MASTER_PORT python src/09_srun.py 10 5

The run is that of 08_multinode_torchrun.py. Only the first lines differ: which rank is
this, and where do the ranks connect?
"""

import os
import socket

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from common import data, distributed, launchers, process_group, snapshot

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def read_ranks() -> launchers.DistEnv:
    """Rank, local rank and world size, as srun or mpirun tells them.

    Raises:
        BadInput: neither of them did, or nothing says where rank 0 listens.
    """
    env = launchers.get_dist_env()
    if env.launcher not in ("srun", "Open MPI", "MPICH"):
        raise distributed.BadInput("neither srun nor mpirun started this: use one")
    missing = {"MASTER_ADDR", "MASTER_PORT"} - set(os.environ)
    if missing:
        raise distributed.BadInput(
            f"{' and '.join(sorted(missing))} not set: export the host of rank 0 and a "
            "free port of it, as job_scripts/multinode_srun.sbatch does"
        )
    return env


def node_rank() -> int:
    """Number the nodes in the order of their first ranks: mpirun does not."""
    hosts = [""] * dist.get_world_size()
    # every rank must reach this line; one host name from each to each
    dist.all_gather_object(hosts, socket.gethostname())
    return list(dict.fromkeys(hosts)).index(socket.gethostname())


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
    # else its first step would round otherwise than the later ones: lesson 06
    image, _ = train_set[:1]  # [1, 1, 8, 8]
    distributed.settle_buckets(ddp_model, image.to(device))
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
def main() -> None:
    """What each process does, on each node; srun or mpirun has started it."""
    config = data.parse_training(__doc__)
    env = read_ranks()
    # every rank must reach this line; MASTER_ADDR and MASTER_PORT say where to connect
    device = process_group.join(
        env.local_rank, rank=env.rank, world_size=env.world_size
    )
    place = f"node {node_rank()} local {env.local_rank} rank {env.rank}"
    train(config, device, place)  # when it returns, DDP is gone
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
