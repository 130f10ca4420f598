"""Train on many nodes in a job that is stopped and started again, as often as needed.

Run from the folder of the workshop, inside a job that says where rank 0 listens:

    export MASTER_ADDR=HOST MASTER_PORT=29500
    srun --nodes=2 --ntasks-per-node=2 python src/09_requeue.py 10 5

SIGUSR1, sent to any rank, saves a snapshot within the epoch and ends all ranks with
exit status 0. The same command resumes from there and ends at the same weights, bit for
bit, as if nothing had happened. job_scripts/requeue.sbatch does both.
"""

import signal

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset

from common import data, distributed, launchers, process_group, snapshot

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def make_loader(dataset: Dataset, batch_size: int, epoch: int, done: int) -> DataLoader:
    """Batches of this rank's share of the images after the first ``done``."""
    sampler = DistributedSampler(dataset, shuffle=True, seed=SEED)
    sampler.set_epoch(epoch)
    share = list(sampler)[done // dist.get_world_size() :]
    # seeds the loader's workers, if it has any
    own = torch.Generator().manual_seed(distributed.rank_seed(SEED, epoch))
    return DataLoader(Subset(dataset, share), batch_size, generator=own)


class Stopped(Exception):
    """A rank was asked to stop, and everything done so far is saved."""


class StopRequest:
    """Whether SIGUSR1 was sent, to this rank or to another one."""

    def __init__(self):
        self.asked: list[int] = []
        # nothing else: the step under way, and its collectives, must end as ever
        signal.signal(signal.SIGUSR1, lambda number, frame: self.asked.append(number))

    def agreed(self, device: torch.device) -> bool:
        """True on all ranks as soon as one was asked; all must call it together."""
        asked = torch.tensor([len(self.asked)], device=device)
        # every rank must reach this line; [1] -> [1], 8 bytes, waits for the device
        dist.all_reduce(asked, op=dist.ReduceOp.MAX)
        return bool(asked.item())


def run_epoch(
    run: snapshot.Run, ddp_model: DDP, loader: DataLoader, stop: StopRequest
) -> torch.Tensor:
    """One pass over the images that are left, or until a rank is asked to stop.

    Returns the sum of their losses, or raises Stopped, before the same step on all.
    """
    ddp_model.train()
    device, optimizer = ddp_model.device, run.parts["optimizer"]
    counters = run.counters
    # on the device: .item() in every step would wait for it
    loss_sum = torch.zeros((), device=device)
    for images, labels in loader:
        if stop.agreed(device):  # every rank, in every step
            run.save()
            if run.not_saved:
                raise distributed.BadInput(run.not_saved)
            raise Stopped
        # from step and rank: so no random state needs to be saved
        distributed.seed_rank(SEED, counters["steps_run"])
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(ddp_model(images), labels)  # the mean over the batch
        loss.backward()  # gradients become the mean over the ranks in here
        optimizer.step()
        loss_sum += loss.detach() * len(labels)
        counters["images_done"] += len(labels) * dist.get_world_size()
        counters["steps_run"] += 1
    return loss_sum


def train(
    config: data.TrainingConfig, device: torch.device, place: str, stop: StopRequest
) -> None:
    """Train the epochs that are left; the DDP object is gone when this returns."""
    torch.manual_seed(SEED)
    train_set, test_set = data.load_digits_split()
    distributed.log(
        f"{len(train_set)} training images on {distributed.describe_world(device)}, "
        f"learning rate {config.learning_rate}, snapshot {config.snapshot}"
    )
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
        done = run.counters["images_done"]
        loader = make_loader(train_set, config.batch_size, epoch, done)
        shape = f"Batch size {config.batch_size} | Steps {len(loader)}"
        distributed.log(f"[{place}] Epoch {epoch} | {shape}", every_rank=True)
        loss_sum = run_epoch(run, ddp_model, loader, stop)
        # every rank must reach this line: the sum over the ranks, 4 bytes
        dist.all_reduce(loss_sum)
        images = len(loader.dataset)  # of each rank
        run.end_epoch(loss_sum.item() / (images * dist.get_world_size()), images)
    data.report(run, model, test_set)


@distributed.one_line_errors
def main() -> None:
    """What each process does, on each node; srun has started it."""
    stop = StopRequest()
    config = data.parse_training(__doc__)
    env = launchers.get_dist_env()
    if env.launcher != "srun":
        raise distributed.BadInput("srun did not start this process: use it")
    place = f"node {env.node_rank} local {env.local_rank} rank {env.rank}"
    # every rank must reach this line; MASTER_ADDR and MASTER_PORT say where to connect
    device = process_group.join(
        env.local_rank, rank=env.rank, world_size=env.world_size
    )
    try:
        train(config, device, place, stop)
    except Stopped:
        distributed.log("Stopped as asked: the same command resumes from the snapshot")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
