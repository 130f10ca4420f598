"""Stop in the middle of an epoch and continue bit for bit, on all ranks.

On every rank, the training loop takes one step for each batch of ``batches_to_come``.
Each step adds 1 to ``training.steps_run`` and calls ``scheduler.step()``. At the end of
an epoch, the loop adds 1 to ``training.epoch`` and sets ``steps_run`` to 0.

``save_snapshot`` is called somewhere in an epoch. Later, new processes that were built
in the same way call ``load_snapshot`` and continue the loop. Every rank must then
compute what it would have computed without the stop, to the last bit. The model uses
dropout, and every rank draws different random numbers for it.

Beware of the loader: each time you start to iterate over a ``DataLoader``, it draws a
number, from torch's global random numbers unless you give it its own generator. A run
that resumes inside an epoch starts one iteration more than a run that never stopped.

    workshop check 06_resume

The page is docs/lessons/06_checkpoints/3_inside_an_epoch.rst.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler

SEED = 0


@dataclass
class Training:
    """What this rank trains, and how far it has got."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    dataset: Dataset
    batch_size: int
    epoch: int = 0  # the current epoch, from 0
    steps_run: int = 0  # the steps of this epoch that are already taken


def batches_to_come(training: Training) -> DataLoader:
    """This rank's batches of the current epoch, without those already trained on.

    The data of skipped batches is not read. The order is the sampler's.
    """
    sampler = DistributedSampler(training.dataset, shuffle=True, seed=SEED)
    # TODO 1 of 3: this epoch's order, in batches, from steps_run on, in a loader.
    # [start answer 1]
    sampler.set_epoch(training.epoch)
    batches = list(BatchSampler(sampler, training.batch_size, drop_last=False))
    return DataLoader(
        training.dataset,
        batch_sampler=batches[training.steps_run :],
        generator=torch.Generator(),
    )
    # [end answer 1]


def save_snapshot(path: Path, training: Training) -> None:
    """Rank 0 writes the file; when this returns, on any rank, it is complete."""
    own = torch.get_rng_state()  # uint8, of the same length on all ranks
    # TODO 2 of 3: gather all ranks' random numbers on rank 0, which writes everything.
    # [start answer 2]
    is_writer = dist.get_rank() == 0
    world_size = dist.get_world_size()
    states = [torch.empty_like(own) for _ in range(world_size)] if is_writer else None
    dist.gather(own, states, dst=0)
    if is_writer:
        snapshot = {"rng": states}
        for name in ("model", "optimizer", "scheduler"):
            snapshot[name] = getattr(training, name).state_dict()
        for name in ("epoch", "steps_run"):
            snapshot[name] = getattr(training, name)
        torch.save(snapshot, path)
    dist.barrier()
    # [end answer 2]


def load_snapshot(path: Path, training: Training) -> None:
    """Restore ``training`` and this rank's random numbers as they were saved."""
    # TODO 3 of 3: restore each thing that save_snapshot wrote.
    # [start answer 3]
    snapshot = torch.load(path, map_location="cpu", weights_only=True)
    for name in ("model", "optimizer", "scheduler"):
        getattr(training, name).load_state_dict(snapshot[name])
    training.epoch = snapshot["epoch"]
    training.steps_run = snapshot["steps_run"]
    torch.set_rng_state(snapshot["rng"][dist.get_rank()])
    # [end answer 3]
