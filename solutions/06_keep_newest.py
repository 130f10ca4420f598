"""Keep several snapshots, and resume from the newest that every rank can read.

A run writes ``snapshot_0.pt`` before it trains, then ``snapshot_1.pt``,
``snapshot_2.pt``, ..., one per epoch, and keeps the last few. Here every rank has its
own folder, as on nodes that write to their own disks. A node that was killed, or whose
disk was full, lacks the newest or has only half of it. The greater the number in its
name, the newer a snapshot, even if the file was copied since then. That number is its
epoch, whatever the file says.

* ``complete_epochs`` looks through one folder: which snapshots can really be read?
* ``agree_on_newest`` is called by all ranks. If each resumed from its own newest, they
  would train different models.
* ``remove_old`` makes room, and must never remove what is still needed.

Leave files that can't be read where they are, so that somebody can look at them, and
leave all other files in the folder alone.

    workshop check 06_keep_newest

The page is docs/lessons/06_checkpoints/2_replace.rst.
"""

import re
from pathlib import Path

import torch
import torch.distributed as dist

NAME = re.compile(r"snapshot_(\d+)\.pt")


def read_snapshot(path: Path) -> dict | None:
    """What a snapshot holds, or None if it is damaged, missing, or not a snapshot."""
    try:
        snapshot = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # a damaged file raises nearly anything
        return None
    return snapshot if isinstance(snapshot, dict) and "epoch" in snapshot else None


def complete_epochs(folder: Path) -> list[int]:
    """The epochs of all snapshots in ``folder`` that can be read, newest first."""
    # TODO 1 of 3: match the names with NAME, order by number, keep what can be read.
    # [start answer 1]
    names = [NAME.fullmatch(path.name) for path in folder.iterdir()]
    epochs = sorted((int(match[1]) for match in names if match), reverse=True)
    return [
        epoch
        for epoch in epochs
        if read_snapshot(folder / f"snapshot_{epoch}.pt") is not None
    ]
    # [end answer 1]


def agree_on_newest(folder: Path) -> int | None:
    """The newest epoch of which *every* rank has a complete snapshot, or None.

    Every rank calls this with its own folder, and all return the same.
    """
    own = complete_epochs(folder)
    # TODO 2 of 3: collect what each rank has, and take the newest that all have.
    # [start answer 2]
    everyone = [None] * dist.get_world_size()
    # every rank must reach this line: a few bytes per rank, once per start
    dist.all_gather_object(everyone, own)
    common = set(everyone[0]).intersection(*everyone[1:])
    return max(common, default=None)
    # [end answer 2]


def remove_old(folder: Path, keep: int) -> None:
    """Remove all complete snapshots except the ``keep`` newest of them."""
    # TODO 3 of 3: which of the complete epochs are no longer needed?
    # [start answer 3]
    for epoch in complete_epochs(folder)[keep:]:
        (folder / f"snapshot_{epoch}.pt").unlink()
    # [end answer 3]
