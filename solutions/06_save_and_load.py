"""Save a DDP training run from one rank, and load it on all.

All ranks hold the same weights, so one file is enough, and rank 0 writes it. The others
must not look for the file before it is complete, and no rank may be left waiting. The
file must also be useful elsewhere: to a program without DDP, whose keys don't begin
with ``module.``, and on a machine without the devices it was written on. Read it with
``weights_only=True``, so that a file from somebody else can't run code.

    workshop check 06_save_and_load

The page is docs/lessons/06_checkpoints/1_save_and_restore.rst.
"""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def save_snapshot(
    path: Path, ddp_model: DDP, optimizer: torch.optim.Optimizer, epochs_run: int
) -> None:
    """Write one file with the keys ``model``, ``optimizer`` and ``epochs_run``.

    Every rank calls this. When it returns, on any rank, the file is complete. Model and
    optimizer are unchanged.
    """
    # TODO 1 of 2: rank 0 writes, with the plain model's keys; the others wait for it.
    # [start answer 1]
    if dist.get_rank() == 0:
        snapshot = {
            "model": ddp_model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epochs_run": epochs_run,
        }
        torch.save(snapshot, path)
    dist.barrier()
    # [end answer 1]


def load_snapshot(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> int:
    """Restore a plain model (not yet wrapped in DDP) and its optimizer from ``path``.

    Every rank calls this. The model keeps its mode, training or evaluation. If the keys
    in the file aren't exactly the model's, raise an error. Returns how many epochs had
    been run when it was saved.
    """
    # TODO 2 of 2: read the file to the CPU, running no code, and restore both.
    # [start answer 2]
    snapshot = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    return snapshot["epochs_run"]
    # [end answer 2]
