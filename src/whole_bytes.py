"""How much of a sharded model is whole on this rank at any moment, counted.

    with WholeBytes() as whole:
        loss_of(model(inputs)).backward()
    print(whole.peak_bytes)

FSDP gathers a group of layers into a buffer and copies it out into the parameters;
buffer and parameters both count here for as long as they have memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from accounting import mine


class WholeBytes(TorchDispatchMode):
    """Counts the bytes of gathered parameters after each operation, while active."""

    def __init__(self) -> None:
        super().__init__()
        self.peak_bytes = 0
        self._storages: dict[int, weakref.ref] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first call would import torch._dynamo, a second

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func._schema.name
        if name == "c10d::_allgather_base_":
            self._watch(args[0])  # the buffer that all shards arrive in
        elif name == "fsdp::split_with_sizes_copy":
            for parameter in kwargs["out"]:
                self._watch(parameter)
        self.peak_bytes = max(self.peak_bytes, self.bytes())
        return result

    def _watch(self, tensor: torch.Tensor) -> None:
        storage = mine(tensor).untyped_storage()
        self._storages[storage._cdata] = weakref.ref(storage)

    def _alive(self) -> Iterator[torch.UntypedStorage]:
        for key, reference in list(self._storages.items()):
            storage = reference()
            if storage is None:
                del self._storages[key]
            else:
                yield storage

    def bytes(self) -> int:
        """Bytes of gathered parameters at the moment."""
        return sum(storage.nbytes() for storage in self._alive())
