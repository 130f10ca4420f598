"""Rank 0's save fails: let all ranks know, without a hang.

Rank 0 can't write the snapshot, because a disk is full or a quota is used up. The other
ranks can't see that. If rank 0 raises and leaves, they hang in the next collective. If
it says nothing, training may run for days without being saved. So rank 0 sends the
others what happened: all ranks continue, or all ranks raise, for the same reason.
``dist.broadcast_object_list`` sends what isn't a tensor, such as a message.

    workshop check 06_failed_save

The page is docs/lessons/06_checkpoints/2_replace.rst.
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
    # TODO 1 of 1: rank 0 writes, and sends all ranks what went wrong, if anything did.
    raise NotImplementedError("TODO 1 of 1")
