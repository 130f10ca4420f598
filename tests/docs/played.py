"""The Python partners of the formulas in docs/_static/js, from the programs themselves.

What the ring holds and sends is what src/03_ring_all_reduce.py does, on threads that
stand for ranks.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import threading

import torch

from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "src"))
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
