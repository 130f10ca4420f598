"""The Python partners of the formulas in docs/_static/js, from the programs themselves.

What the ring holds and sends is what src/03_ring_all_reduce.py does, on threads that
stand for ranks. Orders of pipelines are those of src/common/parallel/pipeline.py and of
PyTorch, groups of a mesh those of PyTorch.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import sys
import threading
from itertools import accumulate
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import schedules
from torch.testing._internal.distributed import fake_pg

from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "src"))
from common.parallel import pipeline

FLOAT32 = 4  # bytes


@functools.cache
def ring_program():
    """src/03_ring_all_reduce.py as a module."""
    path = ROOT / "src" / "03_ring_all_reduce.py"
    spec = importlib.util.spec_from_file_location("ring_all_reduce", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ring:
    """Ranks in threads: stands for torch.distributed, and keeps what each step did."""

    def __init__(self, ranks: int, numel: int) -> None:
        self.ranks, self.local = ranks, threading.local()
        self.together = threading.Barrier(ranks)
        self.wire: list = [None] * ranks
        # bit r of a number is set once the numbers of rank r are summed in it
        self.tensors = [torch.full((numel,), 2.0**rank) for rank in range(ranks)]
        self.chunks = [tensor.tensor_split(ranks) for tensor in self.tensors]
        self.held: list[list] = [[] for _ in range(ranks)]  # [rank][step][chunk]
        self.sent: list[list] = [[] for _ in range(ranks)]  # [rank][step]: chunk

    def get_rank(self) -> int:
        return self.local.rank

    def get_world_size(self) -> int:
        return self.ranks

    def exchange(self, outgoing, incoming) -> int:
        rank = self.local.rank
        self.note_held(rank)
        places = [chunk.data_ptr() for chunk in self.chunks[rank]]
        self.sent[rank].append(places.index(outgoing.data_ptr()))
        self.wire[rank] = outgoing.clone()
        self.together.wait()  # all have sent
        incoming.copy_(self.wire[(rank - 1) % self.ranks])
        self.together.wait()  # all have received
        return outgoing.numel() * FLOAT32

    def note_held(self, rank: int) -> None:
        self.held[rank].append([int(chunk[0]) for chunk in self.chunks[rank]])

    def run(self, rank: int) -> None:
        self.local.rank = rank
        ring_program().ring_all_reduce(self.tensors[rank])
        self.note_held(rank)


@functools.cache
def ran(ranks: int, numel: int) -> Ring:
    """The program's all-reduce of ``numel`` numbers on that many threads."""
    ring, program = Ring(ranks, numel), ring_program()
    kept = program.dist, program.exchange
    program.dist, program.exchange = ring, ring.exchange
    threads = [threading.Thread(target=ring.run, args=(r,)) for r in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    program.dist, program.exchange = kept
    return ring


def ring_held(ranks: int, steps: int) -> list[list[list[int]]]:
    """The ranks whose numbers are summed in chunk c of rank r: [rank][chunk]."""
    held = ran(ranks, ranks).held
    return [
        [[r for r in range(ranks) if bits >> r & 1] for bits in held[rank][steps]]
        for rank in range(ranks)
    ]


def ring_sends(ranks: int, step: int) -> list[int]:
    """The chunk that each rank sends in a step, counted from 0."""
    return [sent[step] for sent in ran(ranks, ranks).sent]


def ring_sent(ranks: int, numel: int, steps: int) -> list[int]:
    """The bytes that each rank has sent after some steps, of float32 numbers."""
    ring = ran(ranks, numel)
    sizes = [FLOAT32 * chunk.numel() for chunk in ring.chunks[0]]
    return [sum(sizes[chunk] for chunk in sent[:steps]) for sent in ring.sent]


# Pipelines: the orders of common/parallel/pipeline.py, and those of PyTorch's schedules

NAMES = {
    "FORWARD": "forward",
    "FULL_BACKWARD": "backward",
    "BACKWARD_INPUT": "input",
    "BACKWARD_WEIGHT": "weight",
}


def pipeline_order(
    schedule: str, rank: int, ranks: int, micro_batches: int, chunks: int
) -> list[tuple[str, int, int]]:
    """What one rank computes, first to last: (what, chunk, micro-batch)."""
    if schedule in pipeline.SCHEDULES:
        actions = pipeline.SCHEDULES[schedule](rank, ranks, micro_batches)
        return [(what, 0, k) for what, k in actions]
    kinds = {"interleaved": "Interleaved1F1B", "zb-h1": "InterleavedZeroBubble"}
    of_torch = schedules.get_schedule_class(kinds[schedule])
    rounds = max(1, micro_batches // ranks)
    planned = of_torch._calculate_single_rank_operations(
        SimpleNamespace(
            n_local_stages=chunks,
            pp_group_size=ranks,
            microbatches_per_round=micro_batches // rounds,
            _n_microbatches=micro_batches,
        ),
        rank,
    )
    return [
        (NAMES[a.computation_type.name], a.stage_index // ranks, a.microbatch_index)
        for a in planned
        if a is not None
    ]


def pipeline_starts(
    schedule: str, ranks: int, micro_batches: int, chunks: int
) -> list[list[int]]:
    """For each rank the slots in which its actions begin, found slot by slot."""
    orders = [
        pipeline_order(schedule, rank, ranks, micro_batches, chunks)
        for rank in range(ranks)
    ]
    starts: list[list[int]] = [[] for _ in orders]
    busy, ends, slot = [0] * ranks, {}, 0
    while any(len(own) < len(order) for own, order in zip(starts, orders, strict=True)):
        for rank, order in enumerate(orders):
            if busy[rank] > slot or len(starts[rank]) == len(order):
                continue
            what, chunk, k = order[len(starts[rank])]
            stage = chunk * ranks + rank
            if not may_start(what, stage, k, ranks * chunks, ends, slot):
                continue
            starts[rank].append(slot)
            busy[rank] = slot + (2 if what == "backward" else 1)
            ends[what, stage, k] = busy[rank]
        slot += 1
    return starts


def may_start(
    what: str, stage: int, k: int, stages: int, ends: dict, slot: int
) -> bool:
    """Whether what an action of a stage needs was done before this slot."""
    if what == "weight":
        needed = [("input", stage, k)]
    elif what == "forward":
        needed = [("forward", stage - 1, k)] if stage else []
    else:
        needed = [("forward", stage, k)]
        needed += [(what, stage + 1, k)] if stage + 1 < stages else []
    return all(ends.get(action, slot + 1) <= slot for action in needed)


def pipeline_bubble(
    schedule: str, ranks: int, micro_batches: int, chunks: int
) -> float:
    """Idle over useful time of all ranks, by the program's own count if it has one."""
    if schedule in pipeline.SCHEDULES:
        made = pipeline.SCHEDULES[schedule]
        orders = [list(made(r, ranks, micro_batches)) for r in range(ranks)]
        return float(pipeline.bubble(orders))
    starts = pipeline_starts(schedule, ranks, micro_batches, chunks)
    last = [
        pipeline_order(schedule, r, ranks, micro_batches, chunks) for r in range(ranks)
    ]
    ends = [
        own[-1] + (2 if order[-1][0] == "backward" else 1)
        for own, order in zip(starts, last, strict=True)
    ]
    useful = 3 * micro_batches * chunks
    return (max(ends) - useful) / useful


def pipeline_peaks(
    schedule: str, ranks: int, micro_batches: int, chunks: int
) -> list[float]:
    """The most micro-batches each rank holds, from forward to the end of backward."""
    peaks = []
    for rank in range(ranks):
        order = pipeline_order(schedule, rank, ranks, micro_batches, chunks)
        live = [
            (what == "forward") - (what in ("backward", "weight")) for what, *_ in order
        ]
        peaks.append(max(accumulate(live)) / chunks)
    return peaks


# Meshes: what PyTorch makes of the same sizes


def mesh_groups(sizes: list[int], rank: int) -> list[list[int]]:
    """Along each axis, the ranks of the group that a rank belongs to."""
    world_size = math.prod(sizes)
    dist.init_process_group(
        "fake", rank=rank, world_size=world_size, store=fake_pg.FakeStore()
    )
    try:
        names = tuple(f"axis {number}" for number in range(len(sizes)))
        mesh = init_device_mesh("cpu", tuple(sizes), mesh_dim_names=names)
        return [dist.get_process_group_ranks(mesh.get_group(name)) for name in names]
    finally:
        dist.destroy_process_group()


# Predictions


def is_right(prediction: float, answer: float, within: float) -> bool:
    """Whether a prediction is off by at most a share of the answer."""
    return abs(prediction - answer) <= within * abs(answer)


# Buckets: those that PyTorch lays out for layers of one tensor each


def bucket_layers(layers: int, layer_bytes: int, cap: int) -> list[int]:
    """Layers in each bucket, last layer first; a cap is in bytes."""
    each = torch.empty(layer_bytes // FLOAT32)
    buckets, _ = dist._compute_bucket_assignment_by_size([each] * layers, [cap])
    return [len(bucket) for bucket in buckets]


def bucket_times(
    layers: int,
    layer_bytes: int,
    cap: int,
    layer_ms: float,
    cost: float,
    bytes_per_ms: float,
) -> list[tuple[float, float]]:
    """(begins, ends) of each bucket's all-reduce in ms, from the start of backward."""
    times: list[tuple[float, float]] = []
    counts = bucket_layers(layers, layer_bytes, cap)
    for count, complete in zip(counts, accumulate(counts), strict=True):
        before = times[-1][1] if times else 0.0
        begins = max(layer_ms * complete, before)
        times.append((begins, begins + cost + layer_bytes * count / bytes_per_ms))
    return times
