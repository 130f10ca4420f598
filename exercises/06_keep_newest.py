"""Keep several snapshots, and go on from the newest that every rank can read.

A training writes ``snapshot_1.pt``, ``snapshot_2.pt``, ..., one per epoch, and keeps
the last few: if the newest is damaged, there is one before it. Here every rank has a
folder of its own, as on nodes that write to their own disks. A node that was killed
or whose disk was full lacks the newest, or has only half of it.

* ``newest_complete`` looks through one folder: which snapshots can really be read?
* ``agree_on_newest`` is called by all ranks: if each went on from its own newest,
  they would train different models.
* ``remove_old`` makes room, and must never remove what would still be needed.

A file that cannot be read is not your mistake to correct: leave it where it is, so
that somebody can look at it. Other files in the folder are none of your business.

    workshop check 06_keep_newest

The page is docs/lessons/06_checkpoints.rst.
"""

import re
from pathlib import Path

import torch
import torch.distributed as dist

NAME = re.compile(r"snapshot_(\d+)\.pt")


def read_snapshot(path: Path) -> dict | None:
    """What a snapshot holds, or None if it is damaged, gone, or no snapshot."""
    try:
        snapshot = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # a damaged file raises nearly anything
        return None
    return snapshot if isinstance(snapshot, dict) and "epoch" in snapshot else None


def complete_epochs(folder: Path) -> list[int]:
    """The epochs of all snapshots in ``folder`` that can be read, newest first."""
    # TODO 1 of 3: match the names with NAME, order by number, keep what can be read.
    raise NotImplementedError("TODO 1 of 3")


def agree_on_newest(folder: Path) -> int | None:
    """The newest epoch of which *every* rank has a complete snapshot, or None.

    Every rank calls this with its own folder, and all return the same.
    """
    mine = complete_epochs(folder)
    # TODO 2 of 3: collect what each rank has, and take the newest that all have.
    raise NotImplementedError("TODO 2 of 3")


def remove_old(folder: Path, keep: int) -> None:
    """Remove all complete snapshots but the ``keep`` newest of them."""
    # TODO 3 of 3: which of the complete epochs are no longer needed?
    raise NotImplementedError("TODO 3 of 3")
