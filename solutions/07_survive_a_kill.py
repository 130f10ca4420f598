"""Write a training program that torchrun may restart at any moment.

When a rank dies, torchrun ends all the others and starts every rank again: new
processes, the same command, from the first line of the program. Only what you saved
tells them how far they had got. ``train`` is called on every rank at the first start,
after each kill, and again if you type the same command a day later. Each time it must
continue from the newest snapshot. At the end, the weights must be those of an
undisturbed run.

* ``data(step)`` returns this rank's batch ``x, y`` of a step, the same every time you
  ask. The first step is number 0. The loss of a batch is
  ``F.mse_loss(ddp_model(x), y)``.
* All nodes see the same folder, but only one rank may write the snapshot.
* Save a snapshot after every ``save_every`` steps, counted from the beginning of
  training, and at no other time.
* Don't repeat any step that has been saved.

``write_snapshot`` is a shorter version of lesson 06's: a kill inside it does no harm.

    workshop check 07_survive_a_kill

The page is docs/lessons/07_torchrun/2_restart.rst.
"""

import os
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel as DDP


def write_snapshot(snapshot: dict, path: Path) -> None:
    """Write the whole snapshot or change nothing; only one rank may call this."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Restore the newest snapshot if there is one; return the number of its steps."""
    # TODO 1 of 2: every rank restores all it needs; return 0 if nothing was saved yet.
    # [start answer 1]
    if not path.exists():
        return 0
    snapshot = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    return snapshot["steps_run"]
    # [end answer 1]


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Callable[[int], tuple[Tensor, Tensor]],
    path: Path,
    total_steps: int,
    save_every: int,
) -> None:
    """Train until ``total_steps`` are done, including those of earlier starts."""
    steps_run = load(path, model, optimizer)
    ddp_model = DDP(model)
    # TODO 2 of 2: run the steps that are left, and save whenever a snapshot is due.
    # [start answer 2]
    for step in range(steps_run, total_steps):
        x, y = data(step)
        optimizer.zero_grad()
        F.mse_loss(ddp_model(x), y).backward()
        optimizer.step()
        if (step + 1) % save_every == 0 and dist.get_rank() == 0:
            snapshot = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "steps_run": step + 1,
            }
            write_snapshot(snapshot, path)
    # [end answer 2]
