"""Which asynchronous calls somebody waited for, and which one a rank waits for now.

``isend``, ``irecv`` and collectives with ``async_op=True`` return a ``Work``. Each that
the learner's own line has begun is kept here until somebody waits for it, so that a
message whose Work is dropped goes out all the same: whether it was waited for is seen,
and not left to luck.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

# what asks a Work for its end; torch 2.8 lacks the last one
ASKS = ("wait", "synchronize", "get_future", "block_current_stream")
_HELD_HERE = 4  # by the entry, the loop, the argument and the list
MAX_KEPT = 1000


@dataclass
class Begun:
    """A Work with its row of the ledger."""

    work: Any
    row: Any
    spans: list[tuple[int, int]]  # where the memory that it uses begins and ends


class Works:
    """The works of one rank."""

    def __init__(self) -> None:
        self._begun: dict[int, Begun] = {}  # what nobody waited for, by the Work's id
        self.waiting: Any = None  # the row of the Work that this rank waits for
        self.used_early: list[dict[str, Any]] = []  # tensors changed or read too soon

    def begin(self, result: Any, row: Any, tensors: list[torch.Tensor]) -> None:
        """Keep the Work in ``result``, which is what the operator of ``row`` gave."""
        last = result[-1] if isinstance(result, (tuple, list)) and result else result
        if isinstance(last, torch.ScriptObject) and len(self._begun) < MAX_KEPT:
            work = dist.Work.unbox(last)
            self._begun[id(work)] = Begun(work, row, [_span(t) for t in tensors])

    def change(self, tensor: Any, line: Callable[[], int | None]) -> None:
        """An operator is about to write into ``tensor``, for the learner's ``line``."""
        self._note(tensor, line, "changed")

    def read(self, tensor: Any, line: Callable[[], int | None]) -> None:
        """An operator is about to read ``tensor``: is what it receives there?"""
        self._note(tensor, line, "read", only="recv")

    def _note(self, tensor: Any, line: Callable, did: str, only: str = "") -> None:
        if not (self._begun and torch.is_tensor(tensor) and tensor.is_contiguous()):
            return
        start, stop = _span(tensor)
        for begun in self._begun.values():
            overlaps = any(a < stop and start < b for a, b in begun.spans)
            if not overlaps or only not in ("", begun.row.op):
                continue
            place = line() if len(self.used_early) < MAX_KEPT else None
            if place:
                self.used_early.append(vars(begun.row) | {"did_at": place, "did": did})

    def unwaited(self) -> list[dict[str, Any]]:
        """The rows of works that were never waited for; ``dropped`` if none can be."""
        found = []
        for begun in self._begun.values():
            dropped = sys.getrefcount(begun.work) < _HELD_HERE
            found.append(vars(begun.row) | {"dropped": dropped})
        return found

    def watch(self) -> None:
        """From now on, note who asks a Work for its end."""
        for name in ASKS:
            if hasattr(dist.Work, name):
                setattr(dist.Work, name, self._noted(getattr(dist.Work, name)))
        is_completed = dist.Work.is_completed

        def asked(work) -> bool:
            completed = is_completed(work)
            if completed:
                self._begun.pop(id(work), None)
            return completed

        setattr(dist.Work, "is_completed", asked)  # noqa: B010, as above

    def _noted(self, function):
        @functools.wraps(function)
        def asked(work, *args, **kwargs):
            begun = self._begun.pop(id(work), None)
            if begun is None:
                return function(work, *args, **kwargs)
            self.waiting = begun.row
            try:
                return function(work, *args, **kwargs)
            finally:
                self.waiting = None

        return asked


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """(start, stop) of the memory of a contiguous tensor; empty for any other."""
    if not tensor.is_contiguous():
        return 0, 0
    start = tensor.data_ptr()
    return start, start + tensor.numel() * tensor.element_size()
