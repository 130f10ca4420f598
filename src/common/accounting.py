"""What one rank holds and what it sends, counted while a step runs.

    counted = count_step(model, optimizer, lambda: train_step(model, optimizer, batch))
    print(compare(counted, what_the_formula_says))

Everything is counted from tensors and from calls, so that it can be compared with a
formula exactly. What the memory allocator adds is not in here.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

# what a rank holds


def local_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a tensor that is on this rank: of a ``DTensor``, its shard."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def bytes_of(tensors: Iterable[torch.Tensor | None]) -> int:
    """Bytes of these tensors on this rank; one that comes twice counts once."""
    own = {}
    for tensor in tensors:
        if tensor is not None:
            local = local_tensor(tensor)
            own[id(tensor)] = local.numel() * local.element_size()
    return sum(own.values())


def parameter_bytes(model: nn.Module) -> int:
    """Bytes of the parameters on this rank."""
    return bytes_of(model.parameters())


def gradient_bytes(model: nn.Module) -> int:
    """Bytes of the gradients that this rank holds now; after ``backward``: all."""
    return bytes_of(parameter.grad for parameter in model.parameters())


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of the optimizer's state on this rank, without its step counters."""
    return bytes_of(
        value
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor) and value.dim() > 0
    )


class Activations(torch.autograd.graph.saved_tensors_hooks):
    """Counts what forward saves for backward, the parameters of ``model`` left out.

    ``bytes`` is what is saved at the moment, ``peak_bytes`` the most so far. Two saved
    tensors that share their memory count once.
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
        storage = local_tensor(tensor).untyped_storage()
        place = storage.data_ptr()
        kept = _Kept(tensor)
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
        return {local_tensor(tensor).untyped_storage().data_ptr() for tensor in owned}


@dataclass(eq=False)
class _Kept:
    """A saved tensor; when autograd lets go of it, so does the count."""

    tensor: torch.Tensor


# what a rank sends

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
    "send": "send",
}


@dataclass(frozen=True)
class Sent:
    """One call: its name, the bytes of this rank's input, its group."""

    op: str
    bytes: int
    group_size: int
    ranks: tuple[int, ...] = ()  # the group's, as they are numbered in the world

    @property
    def on_the_wire(self) -> Fraction:
        """Bytes a rank must send, by the ring algorithms of lesson 03."""
        n, size = self.group_size, Fraction(self.bytes)
        return {
            "all_reduce": 2 * size * (n - 1) / n,
            "all_gather": size * (n - 1),  # the input is one shard of the result
            "reduce_scatter": size * (n - 1) / n,
            "broadcast": size * (n - 1) / n,  # in pieces, each passed on
            "send": size,
        }[self.op]


class Traffic(TorchDispatchMode):
    """Notes every call of this rank while it is active; DDP's and FSDP's, too."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Sent] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first call would import torch._dynamo, a second

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if DTensor in types:
            return NotImplemented  # first it becomes what it does to its shards
        kwargs = kwargs or {}
        namespace, _, name = func._schema.name.partition("::")
        if namespace in ("c10d", "_c10d_functional") and name in NAMES:
            names = [argument.name for argument in func._schema.arguments]
            self._note(NAMES[name], dict(zip(names, args, strict=False)) | kwargs)
        return func(*args, **kwargs)

    def _note(self, op: str, values: dict) -> None:
        if "group_name" in values:
            group = dist.distributed_c10d._resolve_process_group(values["group_name"])
        else:
            group = dist.ProcessGroup.unbox(values["process_group"])
        given = ("input", "input_tensors", "input_tensor", "tensors", "tensor")
        sent = next(values[name] for name in given if name in values)
        size = bytes_of(_flat(sent))
        ranks = tuple(dist.get_process_group_ranks(group))
        self.calls.append(Sent(op, size, len(ranks), ranks))

    def count(self, op: str) -> int:
        """How many calls had this name."""
        return sum(call.op == op for call in self.calls)

    def wire_bytes(self, *ops: str) -> int:
        """Bytes this rank must send for the calls of these names, or for all."""
        parts = [call.on_the_wire for call in self.calls if not ops or call.op in ops]
        return round(sum(parts))


def _flat(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in _flat(item)]


# the table


def count_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: Callable[[], object],
    *ops: str,
) -> dict[str, int]:
    """What this rank holds and sends while ``step()`` runs a whole step."""
    with Traffic() as traffic, Activations(model) as activations:
        step()
    return {
        "parameters": parameter_bytes(model),
        "gradients": gradient_bytes(model),
        "optimizer state": optimizer_bytes(optimizer),
        "activations": activations.peak_bytes,
        "sent in a step": traffic.wire_bytes(*ops),
    }


def compare(
    measured: Mapping[str, int], formula: Mapping[str, int], what: str = "bytes"
) -> str:
    """A line for each quantity: measured on this rank, and by the formula."""
    lines = [f"{what:<22} {'measured':>14} {'formula':>14}"]
    for name, value in formula.items():
        if name not in measured:
            continue  # such as an axis that this mesh has not
        same = "" if value == measured[name] else "   they differ"
        lines.append(f"{name:<22} {measured[name]:>14,} {value:>14,}{same}")
    return "\n".join(lines)
