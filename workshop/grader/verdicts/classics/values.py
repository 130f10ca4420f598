"""Mistakes that a wrong value gives away: by its scale, its order, its shape."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workshop.grader.verdicts.classics.classic import (
    COLLECTIVES,
    Classic,
    Table,
    first_seen,
)

if TYPE_CHECKING:  # the command line reads this module, too
    import torch

PART = re.compile(r", (item \d+|'\w+')$").search  # of a tuple, list or dict


@dataclass(frozen=True)
class Values:
    """A wrong tensor beside the right one, of the same shape.

    Attributes:
        own: the rank's value before communication, or None.
        wrong: where the two differ.
        scale: k if actual = k expected, else None.
        world: the number of ranks.
    """

    actual: torch.Tensor
    expected: torch.Tensor
    own: torch.Tensor | None
    wrong: torch.Tensor
    scale: float | None
    world: int

    def scale_is(self, value: float) -> bool:
        if self.scale is None:
            return False
        return abs(self.scale - value) <= 1e-6 * max(1.0, abs(value))


def _own_value(v: Values) -> str:
    same = v.own is not None and v.own.shape == v.actual.shape
    return "is this rank's own value" if same and _close(v.actual, v.own) else ""


def _other_order(v: Values) -> str:
    if v.scale is not None or v.actual.numel() <= 1:
        return ""
    a, e = (t.flatten().sort().values for t in (v.actual, v.expected))
    return "has the right numbers in another order" if _close(a, e) else ""


def _only_the_end(v: Values) -> str:
    numel = v.actual.numel()
    if v.scale is not None or numel <= 1 or numel % v.world == 0:
        return ""
    wrong = v.wrong.flatten()
    start = int(wrong.nonzero()[0])
    short = start > 0 and numel - start < v.world
    tail = f"is wrong only from element {start} on"
    return tail if short and bool(wrong[start:].all()) else ""


def _same_slots(v: Values) -> str:
    a, e = v.actual, v.expected
    if not a.isfinite().all():  # any infinite number equals any other
        return ""
    if v.scale is not None or not a.dim() or not a.shape[0] == v.world > 1:
        return ""
    same = _rows_equal(a) and not _rows_equal(e)
    return "holds the same part in every slot" if same else ""


def _close(left, right) -> bool:
    """Equal except for the order of a sum, whatever size the numbers have."""
    size = float(right.nan_to_num(0, 0, 0).abs().max())
    return left.allclose(right, rtol=1e-9, atol=1e-12 * size)


def _rows_equal(tensor: torch.Tensor) -> bool:
    return all(bool((tensor[0] == row).all()) for row in tensor[1:])


def _zero_everywhere(v: Values) -> str:
    if not v.scale_is(0.0):
        return ""
    if v.actual.any():
        return "is almost zero everywhere"
    return "is zero everywhere"


IN_VALUES: Table = {
    "not_communicated": Classic(
        "this is still the rank's own value: nothing was communicated, or the "
        "result was not waited for, not used, or stored elsewhere",
        seen=_own_value,
    ),
    "zero": Classic(
        "everything is zero: was the result ever written, or is it cut off at 0?",
        seen=_zero_everywhere,
    ),
    "opposite": Classic(
        "the sign is reversed",
        seen=lambda v: v.scale_is(-1.0) and "has the opposite sign",
    ),
    "not_averaged": Classic(
        "summed over the ranks, but never divided by the world size",
        seen=lambda v: (
            v.world > 1 and v.scale_is(v.world) and f"is {v.world} times too big"
        ),
        gallery="forgotten_divide",
    ),
    "averaged_twice": Classic(
        "divided by the world size twice, for instance ReduceOp.AVG and then "
        "`/ world_size`",
        seen=lambda v: (
            v.world > 1
            and v.scale_is(1 / v.world)
            and f"is 1/{v.world} of the expected value"
        ),
    ),
    "other_order": Classic(
        "the right numbers in another order: parts joined in the wrong order or "
        "along the wrong tensor dim",
        seen=_other_order,
    ),
    "remainder": Classic(
        "only the end is wrong: the length is not a multiple of the world size, "
        "and the remainder was dropped",
        seen=_only_the_end,
    ),
    "all_slots_equal": Classic(
        "every part equals the last one: a list made by `[t] * world_size` holds "
        "one tensor many times",
        COLLECTIVES,
        _same_slots,
    ),
}


OF_MEANS = ("not_averaged", "averaged_twice")


def of_values(
    a, e, own, wrong, scale: float | None, world: int, averages: bool = True
) -> tuple[str, str]:
    """(what is striking, key of the mistake), both may be ""; see :class:`Values`.

    Where no value ``averages`` over the ranks, it does not resemble a wrong mean.
    """
    values = Values(a, e, own, wrong, scale, world)
    table = {k: v for k, v in IN_VALUES.items() if averages or k not in OF_MEANS}
    key, striking = first_seen(table, values)
    if key:
        return striking, key
    if near := a.allclose(e, rtol=1e-5, atol=1e-6 * float(e.abs().max())):
        whole = e.is_complex() or bool((e == e.round()).all())
        if not whole or a.equal(e.float().to(a.dtype)):
            return "is slightly off, as if rounded or computed in a shorter dtype", ""
    if near or scale is None:
        return striking, key
    if a.numel() == 1:  # any number is a multiple of any other
        return "", ""
    return f"is {scale:.4g} times the expected value", ""


def _permuted(actual, expected, world: int) -> bool:
    return len(actual) == len(expected) and sorted(actual) == sorted(expected)


def _longer(actual, expected, world: int) -> bool:
    return len(actual) == len(expected) == 1 and actual[0] > expected[0]


def _shorter(actual, expected, world: int) -> bool:
    vectors = len(actual) == len(expected) == 1 and world > 1
    return vectors and 0 < expected[0] - actual[0] < world


IN_SHAPES: Table = {
    "other_order": replace(IN_VALUES["other_order"], seen=_permuted),
    "length_of_padding": Classic(
        "the padding was not cut off again after the exchange", seen=_longer
    ),
    "remainder": replace(IN_VALUES["remainder"], seen=_shorter),
}


def of_shapes(actual, expected, world_size: int) -> str:
    """The key of the mistake for two different shapes, or ""."""
    return first_seen(IN_SHAPES, actual, expected, world_size)[0]


def of_none(what: str, expected: Any = None) -> tuple[str, str]:
    """(what is striking, key of the mistake) where None is in place of ``what``."""
    if PART(what) and isinstance(expected, (int, float, str)):
        return f"is None, expected {expected!r}", ""  # the rest was returned
    if "grad" in what and " of a gradient" not in what:
        return "is None: backward() did not reach it, or it was emptied", ""
    return "is None: is a `return` missing?", "returns_none"


# What :mod:`workshop.grader.expect` and the questions recognize by themselves.
NAMED: Table = {
    "returns_none": Classic(
        "collectives such as `dist.all_reduce(t)` change `t` in place and return "
        "nothing (None), or a `return` is missing",
    ),
    "not_waited": Classic(
        "an asynchronous call only starts the work: keep the Work that it returns, and "
        "call its `wait()` before you use or change the tensor",
    ),
    "result_of_recv": Classic(
        "`dist.recv(t, source)` writes into `t` what it receives. It returns a number, "
        "the rank of the sender",
        COLLECTIVES,
    ),
    "message_differs": Classic(
        "the two ends of a message name different dtypes: gloo moves bytes, and ends "
        "the program if there is no room for them",
        COLLECTIVES,
    ),
    "message_of_another": Classic(
        "the two ends of a message name different numbers of elements: is it the "
        "partner that you meant, and the same message on both ends? gloo moves bytes, "
        "and ends the program if there is no room for them",
        COLLECTIVES,
    ),
    "nan": Classic("a division by zero, or an uninitialized buffer"),
    "infinite": Classic("a division by zero, or a number too large for its dtype"),
    "ranks_differ": Classic(
        "the ranks do not hold the same value afterwards: one of them missed the "
        "exchange, or started from its own random numbers",
        gallery="drifting_weights",
    ),
}
