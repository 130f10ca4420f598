"""Sees what writes into a tensor that a Work still uses."""

from __future__ import annotations

from collections.abc import Callable

from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
)

from grader.engine.operators import NAMESPACES
from grader.engine.works import Works


class Writes(TorchDispatchMode):
    """Tells ``works`` of each operator that writes into a tensor.

    It makes all operators slow, so it is on only while a Work is pending.
    """

    def __init__(self, works: Works, line: Callable[[], int | None]):
        super().__init__()
        self.works, self.line = works, line
        works.when_none_is_pending = self.stop

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first call would import torch._dynamo, a second

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented  # DTensor goes first: it may call collectives
        if args and func._schema.is_mutable and func.namespace not in NAMESPACES:
            self.works.change(args[0], self.line)
        return func(*args, **(kwargs or {}))

    def watch(self) -> None:
        """Be on from now if a Work is pending, unless another mode is on."""
        if self.works.pending and not _get_current_dispatch_mode_stack():
            self.__enter__()

    def stop(self) -> None:
        """Be off, unless a mode that was entered later is still on."""
        if _get_current_dispatch_mode() is self:
            self.__exit__(None, None, None)
