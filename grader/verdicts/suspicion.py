"""Classic mistakes: how a wrong result gives them away, and what to say of them.

The ids in brackets are those of the workshop's list of mistakes; each was run as
a right and as a wrong program before it was written down here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Classic:
    """A classic mistake: what to tell the learner, and the page that explains it."""

    text: str
    page: str


_DEADLOCKS = "docs/lessons/03_collectives.rst, section Deadlocks"
_COLLECTIVES = "docs/lessons/03_collectives.rst"

CLASSICS = {
    # values
    "returns_none": Classic(
        "collectives such as `dist.all_reduce(t)` change `t` in place and return "
        "nothing (None), or a `return` is missing (C05)",
        _COLLECTIVES,
    ),
    "not_averaged": Classic(
        "summed over the ranks, but never divided by the world size (C03)",
        _COLLECTIVES,
    ),
    "averaged_twice": Classic(
        "divided by the world size twice, for instance ReduceOp.AVG and then "
        "`/ world_size` (C04)",
        _COLLECTIVES,
    ),
    "not_communicated": Classic(
        "this is still the rank's own value: nothing was communicated, or the "
        "result was not waited for or not used",
        _COLLECTIVES,
    ),
    "other_order": Classic(
        "the right numbers in another order: parts joined in the wrong order or "
        "along the wrong tensor dim (C11, C27)",
        _COLLECTIVES,
    ),
    "all_slots_equal": Classic(
        "every part equals the last one: a list made by `[t] * world_size` holds "
        "one tensor many times (C10)",
        _COLLECTIVES,
    ),
    "remainder": Classic(
        "only the end is wrong: the length is not a multiple of the world size, "
        "and the remainder was dropped (C26)",
        _COLLECTIVES,
    ),
    "opposite": Classic("the sign is reversed", ""),
    "zero": Classic("everything is zero: was the result ever written?", ""),
    "nan": Classic("a division by zero, or an uninitialised buffer", ""),
    "only_the_root": Classic(
        "only one rank holds the result: `reduce` and `gather` give it to the root "
        "alone, and `reduce` leaves rubbish in the tensors of the others (C06)",
        _COLLECTIVES,
    ),
    "ranks_differ": Classic(
        "the ranks do not hold the same value afterwards: one of them missed the "
        "exchange, or started from its own random numbers (P01, Z01)",
        _COLLECTIVES,
    ),
    "length_of_padding": Classic(
        "the padding was not cut off again after the exchange", _COLLECTIVES
    ),
    "not_contiguous": Classic(
        "a view that is not contiguous was passed to a collective: gloo then works "
        "on the memory behind it, which belongs to its neighbours (C12)",
        _COLLECTIVES,
    ),
    # hangs
    "all_send": Classic(
        "every rank sends first and nobody receives: `send` waits until its "
        "partner receives, even for a few bytes (C18)",
        _DEADLOCKS,
    ),
    "all_receive": Classic(
        "every rank receives first and nobody has sent yet (C19)", _DEADLOCKS
    ),
    "tags_differ": Classic(
        "sender and receiver use different tags, so they never meet (C21)", _DEADLOCKS
    ),
    "own_root": Classic(
        "each rank names another root (src or dst): it must be the same number on "
        "all ranks (C08)",
        _DEADLOCKS,
    ),
    "not_everybody": Classic(
        "a collective that only some ranks reach, for instance inside "
        "`if rank == 0:` (C01)",
        _DEADLOCKS,
    ),
    "another_order": Classic(
        "the ranks call their collectives in a different order (C02)", _DEADLOCKS
    ),
    "unequal_iterations": Classic(
        "some ranks call it more often than others, for instance because their "
        "loops have different lengths (C29, C30)",
        _DEADLOCKS,
    ),
    "partner_missing": Classic(
        "a send or receive whose partner never comes: wrong neighbour, or one "
        "message more than is taken (C20)",
        _DEADLOCKS,
    ),
    "waited_twice": Classic(
        "`wait()` on the same send or receive twice: with gloo the second one "
        "never returns (X01)",
        _DEADLOCKS,
    ),
    # ledger
    "reduce_op_differs": Classic(
        "the ranks ask for different reductions; gloo mixes them without an error "
        "(C07)",
        _COLLECTIVES,
    ),
    "dtype_differs": Classic(
        "the ranks pass different dtypes; gloo reads the bytes as they come (C13, C14)",
        _COLLECTIVES,
    ),
    "shape_differs": Classic(
        "the ranks pass different shapes, as the last, smaller batch does (C15)",
        _COLLECTIVES,
    ),
    # exceptions
    "keyboard": Classic(
        "a rank has no keyboard: read no input in a distributed program", ""
    ),
    "group_rank": Classic(
        "a rank within the group was given where the global rank is meant, or the "
        "reverse (C23)",
        _COLLECTIVES,
    ),
    "init_twice": Classic(
        "the process group exists already: call `init_process_group` once (E02)",
        "docs/lessons/02_ranks.rst",
    ),
    "gather_list": Classic(
        "only the root gives a list to scatter and gather (X02)", _COLLECTIVES
    ),
    "none_result": Classic(
        "collectives change their tensor in place and return None (C05)", _COLLECTIVES
    ),
    "memory": Classic(
        "far more memory than the exercise needs: is a size computed wrongly?", ""
    ),
}


def of_shapes(actual, expected, world_size: int) -> str:
    """The suspicion for two different shapes."""
    if len(actual) == len(expected) and sorted(actual) == sorted(expected):
        return "other_order"
    if len(actual) == len(expected) == 1 and actual[0] > expected[0]:
        return "length_of_padding"
    if len(actual) == len(expected) == 1 and world_size > 1:
        short = expected[0] - actual[0]
        return "remainder" if 0 < short < world_size else ""
    return ""


def of_values(a, e, own, wrong, scale: float | None, world: int) -> tuple[str, str]:
    """(what is striking about the values, key of the suspicion), both may be "".

    ``a``, ``e``: actual and expected, same shape; ``own``: the rank's value before
    communication or None; ``wrong``: where they differ; ``scale``: k if a = k e.
    """
    import torch  # here, for the command line reads this module, too

    if own is not None and own.shape == a.shape and torch.allclose(a, own, rtol=1e-9):
        return "is this rank's own value", "not_communicated"
    if scale is not None:
        return _of_scale(scale, world, single=a.numel() == 1)
    if a.numel() > 1 and torch.allclose(
        a.flatten().sort().values, e.flatten().sort().values, rtol=1e-9
    ):
        return "has the right numbers in another order", "other_order"
    first_wrong = int(wrong.flatten().nonzero()[0]) if a.numel() > 1 else 0
    tail = bool(wrong.flatten()[first_wrong:].all())
    short = 0 < a.numel() - first_wrong < world and first_wrong > 0
    if tail and short and a.numel() % world:
        return f"is wrong only from element {first_wrong} on", "remainder"
    if a.dim() and a.shape[0] == world > 1 and _rows_equal(a) and not _rows_equal(e):
        return "holds the same part in every slot", "all_slots_equal"
    return "", ""


def _of_scale(scale: float, world: int, single: bool) -> tuple[str, str]:
    def near(value: float) -> bool:
        return abs(scale - value) <= 1e-6 * max(1.0, abs(value))

    if near(0.0):
        return "is zero everywhere", "zero"
    if near(-1.0):
        return "has the opposite sign", "opposite"
    if world > 1 and near(world):
        return f"is {world} times too big", "not_averaged"
    if world > 1 and near(1 / world):
        return f"is 1/{world} of the expected value", "averaged_twice"
    if near(1.0):
        return "is slightly off, as if computed in a shorter dtype", ""
    if single:  # any number is a multiple of any other
        return "", ""
    return f"is {scale:.4g} times the expected value", ""


def _rows_equal(tensor: torch.Tensor) -> bool:
    return all(bool((tensor[0] == row).all()) for row in tensor[1:])


def of_exception(kind: str, message: str) -> str:
    """The suspicion for an exception of the learner's code."""
    table = [
        (kind == "EOFError" or "reading from stdin" in message, "keyboard"),
        ("is not part of group" in message, "group_rank"),
        ("default process group twice" in message, "init_twice"),
        ("gather_list" in message or "scatter_list" in message, "gather_list"),
        ("'NoneType' object" in message, "none_result"),
        ("NoneType" in message and "unsupported operand" in message, "none_result"),
    ]
    return next((key for found, key in table if found), "")
