"""A run of two ranks that is slow for one known reason, or healthy.

torchrun --standalone --nproc-per-node=2 tests/scripts/slow_run.py REASON
"""

import contextlib
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

NAP = 0.06  # seconds, many times what the rest of a step takes
BUSY = -0.06  # the same, but computing
WORKERS = 3  # of a loader, on fewer cores than all of them need


class Numbers(Dataset):
    """Rows of random numbers; one of them may take a nap."""

    def __init__(self, width, rows, nap=0.0):
        self.width, self.rows, self.nap = width, rows, nap

    def __len__(self):
        return 20 * self.rows

    def __getitem__(self, index):
        if index % self.rows == 0:
            end = time.perf_counter() - self.nap
            while self.nap < 0 and time.perf_counter() < end:
                pass
            time.sleep(max(self.nap, 0))
        return torch.full((self.width,), index / len(self))


class Mlp(nn.Sequential):
    """Layers of one width, which compute ``times`` times as long as they need to."""

    def __init__(self, width, layers, times=1):
        super().__init__(*(nn.Linear(width, width) for _ in range(layers)))
        self.times = times

    def forward(self, x):
        for _ in range(self.times):
            result = super().forward(x)
        return result


def over_a_slow_link(_state, bucket):
    """Average it as DDP does, which takes long."""
    if bucket.is_last():
        time.sleep(NAP)
    gradients = bucket.buffer().div_(dist.get_world_size())
    work = dist.all_reduce(gradients, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def one_step(model, optimizer, batch, reason):
    optimizer.zero_grad()
    for _ in range(4 if reason == "every_micro_batch" else 1):
        model(batch).square().mean().backward()
    if reason == "scalars":
        for _ in range(6):  # loss, accuracy, norm, ...
            dist.all_reduce(torch.ones(1))
    if reason == "small_messages":
        for parameter in model.parameters():
            for row in parameter:
                dist.all_reduce(row.detach())
    if reason == "by_hand":
        for parameter in 2 * list(model.parameters()):
            dist.all_reduce(parameter.grad)
    optimizer.step()


def after_step(model, reason, rank, step):
    """What a rank does between two steps."""
    if reason == "loop":
        time.sleep(NAP)
    if reason == "evaluation" and rank == 0 and step % 4 == 3:
        model.eval()
        for _ in range(5):
            time.sleep(NAP)
            model(torch.zeros(1, 32))
        model.train()
    if reason == "late_rank" and rank == 1:
        time.sleep(NAP)
    if reason == "late_in_turn" and step % 2 == rank:
        time.sleep(NAP)
    if reason == "saving" and rank == 0:
        torch.save(model.state_dict(), "snapshot.pt")
        with open("snapshot.pt", "ab") as file:
            os.fsync(file.fileno())


def prepare(reason, rank):
    """(model, width of a row, rows of a batch, seconds that a batch sleeps)"""
    if reason == "workers":
        return Mlp(32, 2), 32, 8, BUSY
    if reason in ("data", "slow_disk"):
        nap = NAP if reason == "data" or rank == 0 else 0
        return Mlp(32, 2), 32, 8, nap
    if reason == "by_hand":
        return Mlp(1500, 4), 1500, 1, 0
    if reason in ("bandwidth", "every_micro_batch"):
        return Mlp(500, 4), 500, 1, 0
    if reason == "threads":
        return Mlp(100, 20, times=4), 100, 100, 0
    if reason in ("healthy", "cores"):
        return Mlp(256, 4, times=8), 256, 256, 0
    if reason == "saving":
        return Mlp(1000, 8), 1000, 1, 0
    if reason == "long_texts":
        return Mlp(256, 2, times=60 if rank == 1 else 1), 256, 256, 0
    return Mlp(32, 2), 32, 4, 0


def main(reason):
    dist.init_process_group("gloo")
    torch.set_num_threads(24 if reason == "threads" else 1)
    torch.manual_seed(0)
    rank = dist.get_rank()
    model, width, rows, nap = prepare(reason, rank)
    if reason == "cores":
        with contextlib.suppress(AttributeError):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    net = model if reason == "by_hand" else DDP(model)
    if reason in ("bandwidth", "every_micro_batch", "short_step"):
        net.register_comm_hook(None, over_a_slow_link)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    step = 0
    for _ in range(3):
        workers = WORKERS * (reason == "workers")
        for batch in DataLoader(Numbers(width, rows, nap), rows, num_workers=workers):
            one_step(net, optimizer, batch, reason)
            after_step(model, reason, rank, step)
            step += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
