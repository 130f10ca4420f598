"""Write a snapshot so that a kill at any moment leaves a complete one.

A job may be killed while it writes a snapshot. The previous one must then still be
there, complete, under its name. So write the new one under another name, and let it
take the old one's place in a single step of the file system.

* A kill: whatever byte was written last, ``path`` can be loaded. What killed processes
  leave behind doesn't pile up, because every save uses the same temporary name.
* A full disk, or an entry that can't be pickled: raise the error, whatever its type,
  and remove what was written, because its space is needed.
* A power failure: no name may reach the disk before its bytes do. ``file.flush()``
  gives the system what Python still holds, and ``os.fsync(file.fileno())`` returns once
  the file's data is on disk.

    workshop check 06_atomic_write

The page is docs/lessons/06_checkpoints/2_replace.rst.
"""

import os
from pathlib import Path

import torch


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder, as they are now, are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_snapshot(snapshot: dict, path: Path) -> None:
    """Replace what is at ``path`` with ``snapshot``, completely or not at all.

    An error while writing, such as a full disk, is raised; ``path`` is then unharmed.
    The dict ``snapshot`` belongs to the caller: leave it unchanged.
    """
    # TODO 1 of 1: write beside path, get it onto the disk, rename it, sync the folder.
    raise NotImplementedError("TODO 1 of 1")
