"""Pipelines: where a model is cut into stages, and in which order each rank computes.

    spans = cut(model, 3)           # [range(0, 2), range(2, 4), range(4, 6)]
    orders = [list(one_f_one_b(rank, 4, 8)) for rank in range(4)]
    bubble(orders)                  # Fraction(3, 8): idle over useful slots
    most_live(orders[0])            # 4 micro-batches wait for their backward

Layer 0 is the embedding, the last one the head, between them are the blocks. A schedule
is a function (rank, ranks, micro_batches) that yields the actions of one rank. The same
functions drive training, and you can count the same from orders that ranks recorded.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, count
from typing import NamedTuple

from torch import nn

from common.byte_gpt import ByteGPT
from common.distributed import BadInput, positive_int


def add_pipeline_options(
    parser: argparse.ArgumentParser, schedules: Collection[str]
) -> None:
    """How the batch is cut, and which of ``schedules`` runs the pieces."""
    add, shown = parser.add_argument, " (default: %(default)s)"
    parts = "parts that a global batch is cut into" + shown
    add("--micro-batches", metavar="M", type=positive_int, default=8, help=parts)
    order = "in which order each rank computes" + shown
    add("--schedule", choices=list(schedules), default="1f1b", help=order)


@dataclass(frozen=True)
class PipelineOptions:
    """What :func:`add_pipeline_options` asks for; a Config derives from it."""

    micro_batches: int  # parts of a global batch, m
    schedule: str


# [start cut]
def _work(layer: nn.Module) -> int:
    """Multiplications for each byte in a layer; a table lookup takes none."""
    linear = (part for part in layer.modules() if isinstance(part, nn.Linear))
    return sum(part.weight.numel() for part in linear)


def cut(model: ByteGPT, stages: int) -> list[range]:
    """The indices of the layers of each stage, so that all have about equal work.

    Raises:
        BadInput: some stage would be empty.
    """
    works = [_work(layer) for layer in model.layers()]
    total = sum(works)
    # a layer goes to the stage whose share of the work contains its midpoint
    middles = [end - own / 2 for own, end in zip(works, accumulate(works), strict=True)]
    owners = [min(int(middle * stages / total), stages - 1) for middle in middles]
    if set(owners) != set(range(stages)):
        raise BadInput(
            f"--blocks {model.sizes.blocks} cannot be cut into {stages} stages of "
            f"about equal work: choose --blocks {stages} or more, or fewer ranks"
        )
    starts = [owners.index(stage) for stage in range(stages)] + [len(owners)]
    return [range(starts[s], starts[s + 1]) for s in range(stages)]


# [end cut]
class Action(NamedTuple):
    """What a rank computes: ``("forward", 3)`` is micro-batch 3 through its stage."""

    what: str  # "forward" or "backward"
    micro_batch: int


Order = Sequence[Action]  # what one rank does, first to last
Schedule = Callable[[int, int, int], Iterator[Action]]


# [start schedules]
def gpipe(rank: int, ranks: int, micro_batches: int) -> Iterator[Action]:
    """All forwards, then all backwards (Huang et al., 2019, "GPipe", section 2.2)."""
    for k in range(micro_batches):
        yield Action("forward", k)
    for k in range(micro_batches):
        yield Action("backward", k)


def one_f_one_b(rank: int, ranks: int, micro_batches: int) -> Iterator[Action]:
    """One forward and one backward in turn, as soon as possible.

    PipeDream-Flush in Narayanan et al., 2021, "Efficient Large-Scale Language Model
    Training on GPU Clusters Using Megatron-LM", section 2.2.
    """
    # the last rank can turn back at once, each previous rank one forward later
    ahead = min(ranks - 1 - rank, micro_batches)
    for k in range(ahead):
        yield Action("forward", k)
    for k in range(ahead, micro_batches):
        yield Action("forward", k)
        yield Action("backward", k - ahead)
    for k in range(micro_batches - ahead, micro_batches):
        yield Action("backward", k)


# [end schedules]
SCHEDULES: dict[str, Schedule] = {"gpipe": gpipe, "1f1b": one_f_one_b}


def slots(orders: Sequence[Order]) -> list[dict[Action, int]]:
    """For each rank: action -> the slot it runs in, if every action takes one slot.

    A rank does its actions in order, each as soon as it can: a forward needs that of
    the rank before, a backward that of the rank after and its own forward.

    Raises:
        ValueError: an action needs something that is never computed.
    """
    done: list[dict[Action, int]] = [{} for _ in orders]
    for slot in count():
        waiting = {
            rank: order[len(done[rank])]
            for rank, order in enumerate(orders)
            if len(done[rank]) < len(order)
        }
        ready = {
            r: action for r, action in waiting.items() if _can_run(action, r, done)
        }
        if not waiting:
            return done
        if not ready:
            what = ", ".join(f"rank {r} for {a} {k}" for r, (a, k) in waiting.items())
            raise ValueError(f"these wait forever: {what}")
        for rank, action in ready.items():
            done[rank][action] = slot
    raise AssertionError("count() never ends")


def _can_run(action: Action, rank: int, done: Sequence[dict[Action, int]]) -> bool:
    """Whether everything that ``action`` needs on ``rank`` is done."""
    if action.what == "forward":
        return rank == 0 or action in done[rank - 1]
    own_forward = Action("forward", action.micro_batch) in done[rank]
    return own_forward and (rank == len(done) - 1 or action in done[rank + 1])


def bubble(orders: Sequence[Order]) -> Fraction:
    """Idle over useful slots of all ranks, from the first action to the last.

    It is (p - 1) / m for GPipe and for 1F1B, with p ranks and m micro-batches
    (Narayanan et al., 2021, section 2.2.1).
    """
    useful = sum(map(len, orders))
    length = 1 + max(slot for done in slots(orders) for slot in done.values())
    return Fraction(len(orders) * length - useful, useful)


def most_live(order: Order) -> int:
    """The most micro-batches whose forward is done and whose backward is not.

    A rank must hold that many sets of activations: m with GPipe, at most p with 1F1B.
    """
    live = most = 0
    for action in order:
        live += 1 if action.what == "forward" else -1
        most = max(most, live)
    return most
