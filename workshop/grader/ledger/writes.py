"""Sees what uses a tensor that a Work still writes, or writes one that it reads."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from workshop.grader.ledger.operators import NAMESPACES
from workshop.grader.ledger.works import Works

# async_op=True, or without its name as the last argument
_BEGINS_A_WORK = re.compile(r"async_op|isend|irecv|,\s*True\s*\)")


def begins_a_work(path: str) -> bool:
    """Whether the program in this file may call something that returns a Work."""
    return bool(_BEGINS_A_WORK.search("".join(linecache.getlines(path))))


class Writes(TorchDispatchMode):
    """Tells ``works`` of each operator that writes into a tensor or reads one.

    It makes all operators slow, so it is on only for a program that ``begins_a_work``:
    for the whole check, since a mode entered in a hook of backward ends with the hook.
    """

    def __init__(self, works: Works, line: Callable[[], int | None]):
        super().__init__()
        self.works, self.line = works, line

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first call would import torch._dynamo, a second

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented  # DTensor goes first: it may call collectives
        if args and func.namespace not in NAMESPACES and not func.is_view:
            writes = func._schema.is_mutable
            if writes:
                self.works.change(args[0], self.line)
            for tensor in tree_leaves(args[writes:]):
                self.works.read(tensor, self.line)
        return func(*args, **(kwargs or {}))
