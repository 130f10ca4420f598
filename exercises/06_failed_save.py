"""Rank 0's save fails: let all ranks know, and none hang.

A disk is full, or a quota is used up, and rank 0 cannot write the snapshot. The others
cannot see that. If rank 0 raises and leaves, they wait in the next collective for ever;
if it keeps silent, a training runs on for days of which nothing is saved. So rank 0
tells the others what happened, and all ranks go on or all ranks raise, for the same
reason. ``dist.broadcast_object_list`` sends what is not a tensor, such as a message.

    workshop check 06_failed_save

The page is docs/lessons/06_checkpoints.rst.
"""

from collections.abc import Callable
from pathlib import Path

import torch.distributed as dist

Write = Callable[[dict, Path], None]  # may raise any Exception


class SaveError(Exception):
    """A snapshot is not on the disk; the message says why."""


def save_or_all_raise(write: Write, snapshot: dict, path: Path) -> None:
    """Let rank 0 call ``write(snapshot, path)``. Every rank calls this function.

    When it returns, on any rank, the file is complete.

    Raises:
        SaveError: on every rank, if ``write`` raised on rank 0. Its message contains
            that of the error, and the ranks are ready for the next collective.
    """
    # TODO 1 of 1: rank 0 writes and tells all ranks what went wrong, if anything did.
    raise NotImplementedError("TODO 1 of 1")
