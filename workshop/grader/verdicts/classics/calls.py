"""Mistakes that the ranks' ledgers give away: calls that do not belong together.

Works on plain data: the rows of the ranks' ledgers.
"""

from __future__ import annotations

from dataclasses import replace

from workshop.grader.verdicts.classics.classic import (
    COLLECTIVES,
    DEADLOCKS,
    Classic,
    Table,
    first_seen,
)
from workshop.grader.verdicts.classics.values import IN_VALUES

# What must agree between the ranks of a group, per collective. The others may
# differ in shape: lists exist on the root only, splits may be uneven.
SAME_SHAPES = {
    "all_reduce",
    "all_reduce_coalesced",
    "broadcast",
    "reduce",
    "all_gather",
    "all_gather_into_tensor",
    "gather",
    "reduce_scatter",
    "reduce_scatter_tensor",
}


def agree(rows: list[dict]) -> bool:
    """Whether calls of several ranks belong together."""
    return len({_signature(row) for row in rows}) <= 1


def only_the_order_differs(calls: list[list[dict]]) -> bool:
    """Whether several ranks made the same calls, each in an order of its own."""
    return len({tuple(sorted(map(_signature, rows))) for rows in calls}) == 1


def _signature(row: dict) -> str:
    parts = [row["op"], str(row["reduce_op"]), str(row["root"])]
    if row["op"] in SAME_SHAPES:
        parts += [str(row["dtypes"]), str(row["shapes"])]
    return " ".join(parts)


def _differ_in(name: str):
    return lambda rows: len({str(row[name]) for row in rows}) > 1


# seen(rows): the calls of several ranks that should be one collective
IN_DIFFERENCES: Table = {
    "ddp_forward": Classic(
        "a forward pass of DDP sends the buffers of rank 0 to all ranks, so every rank "
        "must make equally many: where they differ, call the network itself, "
        "`ddp_model.module`",
        "docs/lessons/05_ddp_spawn/4_measure.rst",
        _differ_in("ddp"),
    ),
    "another_order": Classic(
        "the ranks call their collectives in a different order, or some ranks leave "
        "one out",
        DEADLOCKS,
        _differ_in("op"),
        "another_order",
    ),
    "own_root": Classic(
        "the ranks pass different roots (src or dst): it must be the same on all ranks",
        DEADLOCKS,
        _differ_in("root"),
    ),
    "dtype_differs": Classic(
        "the ranks pass different dtypes; gloo copies the bytes without converting "
        "them",
        COLLECTIVES,
        _differ_in("dtypes"),
        "mixed_dtypes",
    ),
    "lists_of_objects": Classic(
        "the ranks pass lists of different lengths: broadcast_object_list replaces "
        "the items of a list, so each rank needs one with as many items as the root's",
        COLLECTIVES,
        lambda rows: (
            {row["caller"] for row in rows} == {"broadcast_object_list"}
            and _differ_in("shapes")(rows)
        ),
    ),
    "shape_differs": Classic(
        "the ranks pass different shapes, for example because the last batch is "
        "smaller",
        COLLECTIVES,
        _differ_in("shapes"),
        "unequal_shapes",
    ),
    "reduce_op_differs": Classic(
        "the ranks ask for different reductions; gloo mixes them without an error",
        COLLECTIVES,
        _differ_in("reduce_op"),
    ),
}


def with_the_checks_own(rows: list[dict]) -> bool:
    """Whether some of these calls are the check's own, and others the learner's."""
    return {row["line"] is None for row in rows} == {True, False}


def of_difference(rows: list[dict]) -> str:
    """The key of the mistake for calls that do not belong together, or ""."""
    if with_the_checks_own(rows):  # somebody has left the learner's code
        return "not_everybody"
    return first_seen(IN_DIFFERENCES, rows)[0]


def _past_ddp(rows: list[dict]) -> bool:
    """Whether the learner made a DDP, and no gradient was reduced.

    The reducer's own call comes from C++, through no function of torch.distributed. A
    tensor much smaller than the model, which DDP sent when it was made, is a metric.
    """
    own = [row for row in rows if row["line"]]
    made = any(row["ddp"] and row["op"] == "all_gather" for row in own)
    size = max((row["numel"] for row in own if row["ddp"]), default=0)
    reduced = [row for row in own if row["op"] == "all_reduce"]
    return made and all(row["caller"] and 10 * row["numel"] < size for row in reduced)


def _root_alone_is_right(rows: list[dict], right: int) -> bool:
    used = {row["op"] for row in rows if row["line"]}
    return right == 1 and bool(used & {"reduce", "gather"})


def _has_a_view(rows: list[dict]) -> bool:
    return any(row["line"] and not row["contiguous"] for row in rows)


# seen(rows, right): all calls of all ranks, and how many ranks hold the right value
IN_CALLS: Table = {
    "past_ddp": Classic(
        "the model is wrapped, and its gradients were never averaged: the forward pass "
        "went past the DDP wrapper, as `model(images)` and `ddp_model.module(images)` "
        "do, or backward ran under `no_sync()`",
        "docs/lessons/05_ddp_spawn/2_wrap.rst",
        lambda rows, right: _past_ddp(rows),
    ),
    "all_slots_equal": replace(
        IN_VALUES["all_slots_equal"],
        seen=lambda rows, right: any(row["line"] and row["one_slot"] for row in rows),
    ),
    "only_the_root": Classic(
        "only one rank holds the result: `reduce` and `gather` give it to the root "
        "alone, and `reduce` leaves meaningless values in the other ranks' tensors",
        COLLECTIVES,
        _root_alone_is_right,
    ),
    "not_contiguous": Classic(
        "a view that is not contiguous was passed to a collective: gloo then works "
        "on the memory behind it, which belongs to its neighbors",
        COLLECTIVES,
        lambda rows, right: _has_a_view(rows),
    ),
}


def of_calls(rows: list[dict], right: int) -> str:
    """The key of the mistake when only the calls can give a wrong value away."""
    return first_seen(IN_CALLS, rows, right)[0]


def of_calls_before_a_crash(rows: list[dict]) -> str:
    """The key of the mistake if a call may have written beyond its tensor."""
    return "not_contiguous" if _has_a_view(rows) else ""
