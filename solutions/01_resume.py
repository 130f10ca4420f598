"""Save a training run, and resume it as if it had never stopped.

A job hits its time limit and is started again. The resumed run must end with the same
weights, bit for bit, as a run that was never stopped. So the snapshot must hold
everything that the next epoch depends on, not only the weights.

The training uses dropout, which draws from torch's global random numbers, and a
loader that draws its order from a ``torch.Generator`` of its own. The file must be
readable with ``weights_only=True``: it holds tensors, numbers, strings, lists and
dicts, so that reading it runs no code.

    workshop check 01_resume

The page is docs/lessons/01_one_device/2_stop_and_resume.rst.
"""

from pathlib import Path

import torch
from torch import nn


def save_snapshot(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader_generator: torch.Generator,
    epochs_run: int,
) -> None:
    """Write what the next epoch depends on into the file ``path``."""
    # TODO 1 of 2: put all of it into one dict, and write the dict with torch.save.
    # [start answer 1]
    snapshot = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
        "rng": torch.get_rng_state(),
        "loader_rng": loader_generator.get_state(),
    }
    torch.save(snapshot, path)
    # [end answer 1]


def load_snapshot(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader_generator: torch.Generator,
) -> int:
    """Restore everything from ``path``, and return how many epochs had been run.

    The model, the optimizer and the generator belong to a new process. They're built
    in the same way, but with different weights, no history, and other random numbers.
    """
    # TODO 2 of 2: read the dict, restore each thing from it, return the epochs.
    # [start answer 2]
    snapshot = torch.load(path, weights_only=True)
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    torch.set_rng_state(snapshot["rng"])
    loader_generator.set_state(snapshot["loader_rng"])
    return snapshot["epochs_run"]
    # [end answer 2]
