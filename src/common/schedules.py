"""Schedules of a pipeline: in which order each rank computes, and what that costs.

    orders = [list(one_f_one_b(rank, 4, 8)) for rank in range(4)]
    bubble(orders)                  # Fraction(3, 8): idle over useful slots
    most_live(orders[0])            # 4 micro-batches wait for their backward

A schedule is a function (rank, ranks, micro_batches) that yields the actions of one
rank. The same functions drive the training, and what is counted here can be counted
from the orders that ranks have recorded, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple


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
    """One forward, one backward in turn, as soon as that is possible.

    PipeDream-Flush in Narayanan et al., 2021, "Efficient Large-Scale Language Model
    Training on GPU Clusters Using Megatron-LM", section 2.2.
    """
    # the last rank can turn back at once, each one before it a forward later
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

    A rank does its actions in its order, each as soon as what it needs is there: a
    forward needs that of the rank before, a backward that of the rank after and its
    own forward.

    Raises:
        ValueError: an action needs something that never comes.
    """
    done: list[dict[Action, int]] = [{} for _ in orders]
    slot = 0
    while any(len(mine) < len(order) for mine, order in zip(done, orders, strict=True)):
        ready = [
            (rank, order[len(done[rank])])
            for rank, order in enumerate(orders)
            if len(done[rank]) < len(order)
            and needs(order[len(done[rank])], rank, done)
        ]
        if not ready:
            waiting = [
                f"rank {rank} for {' '.join(map(str, order[len(done[rank])]))}"
                for rank, order in enumerate(orders)
                if len(done[rank]) < len(order)
            ]
            raise ValueError(f"these wait for ever: {', '.join(waiting)}")
        for rank, action in ready:
            done[rank][action] = slot
        slot += 1
    return done


def needs(action: Action, rank: int, done: Sequence[dict[Action, int]]) -> bool:
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
    length = 1 + max(slot for mine in slots(orders) for slot in mine.values())
    return Fraction(len(orders) * length - useful, useful)


def most_live(order: Order) -> int:
    """The most micro-batches whose forward is done and whose backward is not.

    So many sets of activations a rank must hold: m with GPipe, with 1F1B at most p.
    """
    live = most = 0
    for action in order:
        live += 1 if action.what == "forward" else -1
        most = max(most, live)
    return most
