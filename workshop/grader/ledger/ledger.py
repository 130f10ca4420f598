"""A rank's ledger: every collective it calls, with shape, dtype, group and line.

It listens to the operators underneath ``torch.distributed`` (``operators.py``), so it
also records what DDP and FSDP2 call by themselves. A row is written *before* the
operator runs: the last row of a rank that hangs is what it hangs in.
"""

from __future__ import annotations

import contextlib
import linecache
import math
import os
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import typing_extensions

from workshop.grader.ledger import operators, writes
from workshop.grader.ledger.works import Works

TORCH = os.path.dirname(torch.__file__) + os.sep
GRADER = str(Path(__file__).resolve().parents[2]) + os.sep
MAX_ROWS, MAX_TOLD = 2000, 300

# c10d operator -> the name a learner calls it by
NAMES = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce_coalesced",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
    "allgather_": "all_gather",
    "allgather_coalesced_": "all_gather_coalesced",
    "allgather_into_tensor_coalesced_": "all_gather_into_tensor_coalesced",
    "_allgather_base_": "all_gather_into_tensor",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter_tensor_coalesced",
    "gather_": "gather",
    "scatter_": "scatter",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all_single",
    "barrier": "barrier",
    "monitored_barrier_": "monitored_barrier",
    "send": "send",
    "recv_": "recv",
    "recv_any_source_": "recv",
    "all_reduce": "all_reduce",
    "all_gather_into_tensor": "all_gather_into_tensor",
    "reduce_scatter_tensor": "reduce_scatter_tensor",
    "all_to_all_single": "all_to_all_single",
    "broadcast": "broadcast",
}
POINT_TO_POINT = ("send", "recv")
_C10D = (
    os.path.join(TORCH, "distributed", "distributed_c10d.py"),
    os.path.join(TORCH, "distributed", "c10d_logger.py"),
)
# what stands between a learner's line and the operator; the old names of functions are
# wrapped, as reduce_scatter_tensor is
_BETWEEN = (
    *_C10D,
    os.path.join(TORCH, "_ops.py"),
    writes.__file__,
    typing_extensions.deprecated.__call__.__code__.co_filename,
)
_DDP = os.path.join(TORCH, "nn", "parallel", "distributed.py")
_SENT = ("input", "input_tensors", "input_tensor", "inputs", "tensors", "tensor")


@dataclass
class Row:
    """One call of one rank.

    ``shapes``, ``dtypes``, ``numel`` and ``bytes`` are of what this rank passes
    in (for a receive: what it asks for); ``group`` holds global ranks; ``root``
    and ``peer`` are global ranks; ``line`` is in the learner's file, or None if
    the check itself made the call. ``caller`` is the function of torch.distributed
    that was called, ``ddp`` whether DistributedDataParallel called it, ``one_slot``
    whether tensors to receive into share memory.
    """

    op: str
    reduce_op: str | None = None
    root: int | None = None
    peer: int | None = None
    tag: int | None = None
    group: tuple[int, ...] | None = None
    shapes: list[list[int]] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    numel: int = 0
    bytes: int = 0
    contiguous: bool = True
    line: int | None = None
    where: str = ""
    source: str = ""
    caller: str = ""
    ddp: bool = False
    one_slot: bool = False

    @property
    def elements(self) -> int:
        """``numel``; of a pickled tensor, which is bytes, some 500 of them about it."""
        pickled = self.dtypes == ["uint8"]
        return max(0, self.numel - 500) // 8 if pickled else self.numel


class Ledger:
    """The rows of this rank; what a check gets as its argument ``ledger``.

    ``with ledger:`` records what this thread calls.
    """

    def __init__(self, exercise_path: str, tell: Callable[[dict], Any] = len):
        self._tell = tell  # of the first calls, for a rank may crash
        self.rows: list[Row] = []
        self.works = Works()
        self.exercise_path = exercise_path
        self._writes: contextlib.AbstractContextManager = contextlib.nullcontext()
        self._thread, self._within = 0, False
        self._before: operators.Listener | None = None

    def __enter__(self) -> Ledger:
        self._thread = threading.get_ident()
        self._before = operators.listen(self._called)
        if writes.begins_a_work(self.exercise_path):
            self._writes = writes.Writes(self.works, self._line)
        self._writes.__enter__()
        return self

    def __exit__(self, *exception) -> None:
        self._writes.__exit__(*exception)
        operators.listen(self._before)

    def _line(self) -> int | None:
        return _Caller(self.exercise_path, sys._getframe(1)).line

    def _called(self, func, args, kwargs, go):
        """An operator is called; a functional one calls another, which is no row."""
        op = NAMES.get(func._schema.name.partition("::")[2])
        if op is None or self._within or threading.get_ident() != self._thread:
            return go(*args, **kwargs)
        caller = _Caller(self.exercise_path, sys._getframe(2))
        row = self._row(op, func, args, kwargs, caller)
        _refuse_a_rank_that_is_not_there(row)
        self.rows.append(row)
        if len(self.rows) <= MAX_TOLD:
            self._tell(vars(row))
        self._within = True
        try:
            result = go(*args, **kwargs)
        finally:
            self._within = False
        if caller.gets_the_work:
            self.works.begin(result, row, _tensors(list(args)))
        return result

    # -- what checks ask -------------------------------------------------------
    def ops(self) -> list[str]:
        """The names of the calls so far, in order."""
        return [row.op for row in self.rows]

    def count(self, *names: str) -> int:
        """How many calls had one of these names."""
        return sum(row.op in names for row in self.rows)

    def bytes_sent(self) -> int:
        """Bytes that this rank handed to ``send`` and ``isend`` so far."""
        return sum(row.bytes for row in self.rows if row.op == "send")

    def clear(self) -> None:
        """Forget the calls so far (for a check that grades only what follows)."""
        self.rows.clear()

    def waits_for(self) -> dict[str, Any] | None:
        """The row of the Work that this rank waits for now."""
        row = self.works.waiting
        return row and vars(row)

    def report(self) -> list[dict[str, Any]]:
        """The rows as plain data; the middle of a very long ledger is left out."""
        rows = self.rows
        if len(rows) > MAX_ROWS:
            rows = rows[: MAX_ROWS // 2] + rows[-MAX_ROWS // 2 :]
        return [vars(row) for row in rows]

    # -- how a row is made -----------------------------------------------------
    def _row(self, op: str, func, args, kwargs, caller: _Caller) -> Row:
        names = [argument.name for argument in func._schema.arguments]
        values = dict(zip(names, args, strict=False)) | kwargs
        group = _group(values)
        sent = next((values[n] for n in _SENT if n in values), [])
        tensors = _tensors(sent) or _tensors(list(values.values()))
        if op == "barrier":
            tensors = []
        return Row(
            op=op,
            reduce_op=_reduce_op(values),
            root=_global(values.get("root_rank"), group),
            peer=_global(values.get("dst", values.get("src")), group),
            tag=values.get("tag"),
            group=group,
            shapes=[list(t.shape) for t in tensors],
            dtypes=[str(t.dtype).removeprefix("torch.") for t in tensors],
            numel=sum(t.numel() for t in tensors),
            bytes=sum(t.numel() * t.element_size() for t in tensors),
            contiguous=all(t.is_contiguous() for t in tensors),
            line=caller.line,
            where=caller.where,
            source=caller.source,
            caller=caller.function,
            ddp=caller.ddp,
            one_slot=_one_slot(values.get("output_tensors")),
        )


class _Caller:
    """Who called the operator: the learner's line, or the nearest outside torch.

    Attributes:
        function: the function of torch.distributed that was called, or "".
        line, where, source: line in the learner's file, file:line, and its text.
        ddp: whether DistributedDataParallel is on the way.
        gets_the_work: whether the learner's own line called, and nothing between.
    """

    def __init__(self, exercise_path: str, frame: types.FrameType | None):
        self.line: int | None = None
        self.function = self.where = self.source = ""
        self.ddp, self.gets_the_work = False, True
        while frame is not None:
            name = frame.f_code.co_filename
            if name == exercise_path:
                self.line, self.where = frame.f_lineno, f"line {frame.f_lineno}"
                self.source = linecache.getline(name, frame.f_lineno or 0).strip()
                return
            if name == _C10D[0]:
                self.function = frame.f_code.co_name
            self.gets_the_work &= name in _BETWEEN
            self.ddp |= name == _DDP
            if not self.where and not name.startswith((TORCH, GRADER)):
                self.where = f"{os.path.basename(name)}:{frame.f_lineno}"
                self.source = linecache.getline(name, frame.f_lineno or 0).strip()
            frame = frame.f_back
        self.gets_the_work = False


def _one_slot(slots: Any) -> bool:
    """Whether tensors to receive into are one and the same, as in ``[t] * 4``."""
    with contextlib.suppress(RuntimeError):  # a tensor without memory
        starts = [t.data_ptr() for t in _tensors(slots) if t.numel()]
        return len(set(starts)) < len(starts)
    return False


def _refuse_a_rank_that_is_not_there(row: Row) -> None:
    """Say what gloo does not: a message to rank W ends there as a crash or a loop."""
    if row.op not in POINT_TO_POINT or row.peer is None or row.group is None:
        return
    if row.peer not in row.group:
        raise ValueError(
            f"{row.op} names rank {row.peer}, but the ranks are "
            f"{row.group[0]} to {row.group[-1]}"
        )


def _tensors(value: Any) -> list[torch.Tensor]:
    """All tensors in nested lists, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _group(values: dict[str, Any]) -> tuple[int, ...] | None:
    """The global ranks of the call's group."""
    try:
        if "group_name" in values:
            group = dist.distributed_c10d._resolve_process_group(values["group_name"])
        else:
            group = dist.ProcessGroup.unbox(values["process_group"])
        return tuple(map(int, dist.get_process_group_ranks(group)))  # may be NumPy's
    except (KeyError, RuntimeError, ValueError, TypeError):
        return None


def _global(rank: Any, group: tuple[int, ...] | None) -> int | None:
    """A rank of the group as a global rank (the operators take group ranks)."""
    if not isinstance(rank, int):
        return None
    return group[rank] if group is not None and 0 <= rank < len(group) else rank


def _reduce_op(values: dict[str, Any]) -> str | None:
    """``SUM``, ``AVG``, ...: from the caller's frame, for the operator hides it."""
    if isinstance(values.get("reduce_op"), str):
        return values["reduce_op"].upper()
    if "reduce_op" not in values:
        return None
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.endswith("distributed_c10d.py"):
            op = frame.f_locals.get("op")
            if op is None and "opts" in frame.f_locals:
                op = getattr(frame.f_locals["opts"], "reduceOp", None)
            if op is not None:
                return str(op).rsplit(".", 1)[-1].rstrip(">").split(":")[0]
        frame = frame.f_back
    return None


def ring_bytes(size_in_bytes: int, world_size: int) -> int:
    """What a ring all-reduce sends per rank: 2 (n-1)/n x S, rounded up."""
    return math.ceil(2 * (world_size - 1) * size_in_bytes / world_size)
