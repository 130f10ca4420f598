"""What one rank holds and what it sends, counted while a step runs.

Everything is counted from tensors and from calls, so that it can be compared with a
formula exactly; what the memory allocator adds is not included. Private names of
torch that more than one program needs are in this file.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils._pytree import tree_leaves


def _local_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a tensor that is on this rank: of a ``DTensor``, its shard."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def bytes_of(tensors: Iterable[torch.Tensor | None]) -> int:
    """Bytes of these tensors on this rank; a tensor that occurs twice counts once."""
    own = {id(tensor): tensor for tensor in tensors if tensor is not None}
    return sum(_local_tensor(tensor).nbytes for tensor in own.values())


def storage_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of memory behind these tensors: 0 for freed ones, shared memory once."""
    storages = (_local_tensor(tensor).untyped_storage() for tensor in tensors)
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of the optimizer's state on this rank, without its step counters."""
    return bytes_of(
        value
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor) and value.dim() > 0
    )


class Activations(torch.autograd.graph.saved_tensors_hooks):
    """Counts what forward saves for backward, except the parameters of ``model``.

    ``bytes`` is what is saved now, ``peak_bytes`` the most so far. Two saved tensors
    that share their memory count once.
    """

    def __init__(self, model: nn.Module):
        super().__init__(self._keep, lambda kept: kept.tensor)
        self._model = weakref.ref(model)
        self._users: dict[int, int] = {}  # storage -> saved tensors that need it
        self.bytes = self.peak_bytes = 0

    def __enter__(self) -> Activations:
        super().__enter__()
        return self

    def _keep(self, tensor: torch.Tensor) -> _Kept:
        storage = _local_tensor(tensor).untyped_storage()
        place, kept = storage.data_ptr(), _Kept(tensor)
        if tensor.numel() == 0 or place in self._parameters():
            return kept
        if self._users.setdefault(place, 0) == 0:
            self.bytes += storage.nbytes()
            self.peak_bytes = max(self.peak_bytes, self.bytes)
        self._users[place] += 1
        weakref.finalize(kept, self._release, place, storage.nbytes())
        return kept

    def _release(self, place: int, size: int) -> None:
        self._users[place] -= 1
        if self._users[place] == 0:
            self.bytes -= size

    def _parameters(self) -> set[int]:
        model = self._model()
        owned = model.parameters() if model is not None else ()
        return {_local_tensor(tensor).untyped_storage().data_ptr() for tensor in owned}


@dataclass(eq=False)
class _Kept:
    """A saved tensor; the count drops when autograd releases it."""

    tensor: torch.Tensor


class _Operations(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first call would import torch._dynamo, a second


class PeakBytes(_Operations):
    """The most that ``bytes_now()`` returns after any operation, as ``peak_bytes``."""

    def __init__(self, bytes_now: Callable[[], int]):
        super().__init__()
        self.bytes_now, self.peak_bytes = bytes_now, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.peak_bytes = max(self.peak_bytes, self.bytes_now())
        return result


class UnshardedBytes(PeakBytes):
    """Counts the parameters that FSDP has gathered and not yet freed."""

    def __init__(self) -> None:
        super().__init__(self.bytes)
        self._storages: dict[int, weakref.ref] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name, gathered = func._schema.name, []
        if name == "c10d::_allgather_base_":
            gathered = [args[0]]  # the buffer that receives all shards
        elif name == "fsdp::split_with_sizes_copy":
            gathered = kwargs["out"]
        for tensor in gathered:
            storage = _local_tensor(tensor).untyped_storage()
            self._storages[storage._cdata] = weakref.ref(storage)
        return super().__torch_dispatch__(func, types, args, kwargs)

    def bytes(self) -> int:
        """Bytes of gathered parameters now."""
        alive = (reference() for reference in self._storages.values())
        return sum(storage.nbytes() for storage in alive if storage is not None)


# c10d operator -> name in torch.distributed
NAMES = {
    "allreduce_": "all_reduce",
    "all_reduce": "all_reduce",
    "broadcast_": "broadcast",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "alltoall_base_": "all_to_all",
    "send": "send",
}


@dataclass(frozen=True)
class Sent:
    """One call: its name, the bytes of this rank's input, its group."""

    op: str
    bytes: int
    group_size: int
    ranks: tuple[int, ...] = ()  # of the group, as they are numbered in the world
    stays: int | None = None  # bytes of an uneven all-to-all for the rank itself

    @property
    def on_the_wire(self) -> Fraction:
        """Bytes a rank must send, by the ring algorithms of lesson 03."""
        n, size = self.group_size, Fraction(self.bytes)
        if self.stays is not None:
            return size - self.stays
        return {
            "all_reduce": 2 * size * (n - 1) / n,
            "all_gather": size * (n - 1),  # the input is one shard of the result
            "reduce_scatter": size * (n - 1) / n,
            "broadcast": size * (n - 1) / n,  # in pieces, each passed on
            "all_to_all": size * (n - 1) / n,  # its own piece stays
            "send": size,
        }[self.op]


def group_named(name: str) -> dist.ProcessGroup:
    """The process group of this name, which no public function finds (torch 2.13)."""
    return dist.distributed_c10d._resolve_process_group(name)


class Traffic(_Operations):
    """Records every call of this rank while active, including DDP's and FSDP's."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Sent] = []

    def __enter__(self) -> Traffic:
        self._all_reduce, dist.all_reduce = dist.all_reduce, self._in_any_thread
        return super().__enter__()

    def __exit__(self, *error) -> None:
        dist.all_reduce = self._all_reduce
        super().__exit__(*error)

    def _in_any_thread(self, tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
        if _get_current_dispatch_mode() is None:  # a thread of gloo, for PowerSGD
            ranks = tuple(dist.get_process_group_ranks(group))
            self.calls.append(Sent("all_reduce", tensor.nbytes, len(ranks), ranks))
        return self._all_reduce(tensor, op, group, async_op)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if DTensor in types:
            return NotImplemented  # DTensor first turns it into calls on shards
        kwargs = kwargs or {}
        namespace, _, name = func._schema.name.partition("::")
        if namespace in ("c10d", "_c10d_functional") and name in NAMES:
            names = [argument.name for argument in func._schema.arguments]
            self._note(NAMES[name], dict(zip(names, args, strict=False)) | kwargs)
        return func(*args, **kwargs)

    def _note(self, op: str, values: dict) -> None:
        name, unbox = values.get("group_name"), dist.ProcessGroup.unbox
        group = group_named(name) if name else unbox(values["process_group"])
        given = ("input", "input_tensors", "input_tensor", "tensors", "tensor")
        sent = next(values[name] for name in given if name in values)
        size = bytes_of(tree_leaves(sent))
        ranks, stays = tuple(dist.get_process_group_ranks(group)), None
        splits = values.get("input_split_sizes")
        if splits:
            rows = sum(splits)
            own_rows = splits[dist.get_rank(group)]
            stays = size // rows * own_rows if rows else 0
        self.calls.append(Sent(op, size, len(ranks), ranks, stays))

    def wire_bytes(self, *ops: str) -> int:
        """Bytes this rank must send for the calls of these names, or for all."""
        parts = [call.on_the_wire for call in self.calls if not ops or call.op in ops]
        return round(sum(parts))


def count_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: Callable[[], object],
    *ops: str,
) -> dict[str, int]:
    """Bytes that this rank holds and sends while ``step()`` runs a whole step."""
    with Traffic() as traffic, Activations(model) as activations:
        step()
    return {
        "parameters": bytes_of(model.parameters()),
        "gradients": bytes_of(parameter.grad for parameter in model.parameters()),
        "optimizer state": optimizer_bytes(optimizer),
        "activations": activations.peak_bytes,
        "sent in a step": traffic.wire_bytes(*ops),
    }
