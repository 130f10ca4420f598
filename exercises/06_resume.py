"""Stop in the middle of an epoch and continue bit for bit, on all ranks.

The training loop, which is not yours to change, does this on every rank:

* ask ``batches_to_come`` for a loader, and take one step for each of its batches;
  each step counts ``training.steps_run`` up by one and calls ``scheduler.step()``;
* at the end of the epoch, count ``training.epoch`` up and set ``steps_run`` to 0.

Somewhere in an epoch ``save_snapshot`` is called. Later, in new processes that were
built in the same way but know nothing, ``load_snapshot`` is called, and the loop goes
on. From there on every rank must compute what it would have computed without the
stop, to the last bit. The model uses dropout, and every rank draws other random
numbers for it.

Beware of the loader: each time somebody begins to iterate over a ``DataLoader``, it
draws a number, from torch's global random numbers unless it is given a generator of
its own. A resumed run begins once more than one that was never stopped.

    workshop check 06_resume

The page is docs/lessons/06_checkpoints.rst.
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
    """What trains on this rank, and how far it has come."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    dataset: Dataset
    batch_size: int
    epoch: int = 0  # the epoch that is under way, from 0
    steps_run: int = 0  # the steps of this epoch that are already taken


def batches_to_come(training: Training) -> DataLoader:
    """This rank's batches of the epoch under way, without those already trained on.

    The data of batches that are left out is not read. The order is the sampler's.
    """
    sampler = DistributedSampler(training.dataset, shuffle=True, seed=SEED)
    # TODO 1 of 3: this epoch's order, in batches, from steps_run on, in a loader.
    raise NotImplementedError("TODO 1 of 3")


def save_snapshot(path: Path, training: Training) -> None:
    """Rank 0 writes the file; when this returns, on any rank, it is complete."""
    mine = torch.get_rng_state()  # uint8, of the same length on all ranks
    # TODO 2 of 3: the random numbers of all ranks to rank 0, which writes everything.
    raise NotImplementedError("TODO 2 of 3")


def load_snapshot(path: Path, training: Training) -> None:
    """Bring ``training`` and this rank's random numbers to where they were saved."""
    # TODO 3 of 3: restore each thing that save_snapshot wrote.
    raise NotImplementedError("TODO 3 of 3")
