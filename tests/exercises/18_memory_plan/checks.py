"""Checks of exercises/18_memory_plan.py: other models, stages and devices."""

import itertools
import math
from numbers import Integral

import pytest

from workshop.grader import expect

expect.nothing_is_averaged()

GB = 1_000_000_000
# parameters, layers, width, heads, context
SIZES = [
    (6_700_000_000, 32, 4096, 32, 2048),
    (1_300_000_001, 24, 2048, 16, 1024),
    (12_850_000_000, 40, 5120, 40, 2048),
    (124_000_003, 12, 768, 12, 4096),
    (30_000_000_000, 48, 7168, 56, 2048),
]


def state(parameters, stage, ranks):
    """Kind by kind: bytes of a number, and the stage that shards it."""
    total = 0
    for size, first in ((2, 3), (2, 2), (12, 1)):
        total += size * math.ceil(parameters / (ranks if stage >= first else 1))
    return total


def saved(sizes, batch, recompute):
    """Layer by layer, at the moment when most is held."""
    _, layers, width, heads, context = sizes
    whole = 34 * batch * context * width + 5 * heads * batch * context * context
    if not recompute:
        return sum(whole for _ in range(layers))
    return sum(2 * batch * context * width for _ in range(layers)) + whole


def cheapest(sizes, ranks, memory):
    for recompute, stage in itertools.product((False, True), range(4)):
        held, batch = state(sizes[0], stage, ranks), 0
        while 10 * (held + saved(sizes, batch + 1, recompute)) <= 9 * memory:
            batch += 1
        if batch:
            return stage, recompute, batch
    return None


def words(model):
    return f"{model.parameters:,} parameters"


def whole_number(found, what):
    expect.that(
        found is None or isinstance(found, Integral),
        f"{what} is a {type(found).__name__}; expected a whole number of bytes",
    )


@pytest.mark.ranks(1)
def test_state_of_a_rank(exercise):
    """Parameters, gradients and optimizer state, for each stage."""
    for parameters, ranks, stage in itertools.product(
        (6_700_000_000, 124_000_003, 10), (8, 64, 3, 1), range(4)
    ):
        what = f"state of {parameters:,} parameters on {ranks} rank(s), stage {stage}"
        found = exercise.state_bytes(parameters, stage, ranks)
        whole_number(found, what)
        expect.equal(found, state(parameters, stage, ranks), what)


@pytest.mark.ranks(1)
def test_activations_of_a_rank(exercise):
    """What all layers hold for backward, recomputed or not."""
    for sizes, batch, recompute in itertools.product(SIZES, (1, 3), (False, True)):
        model = exercise.Model(*sizes)
        how = "recomputed" if recompute else "kept"
        what = f"activations of {words(model)}, {batch} sequence(s), {how}"
        found = exercise.activation_bytes(model, batch, recompute)
        whole_number(found, what)
        expect.equal(found, saved(sizes, batch, recompute), what)


@pytest.mark.ranks(1)
def test_cheapest_plan(exercise):
    """No recomputing before recomputing, lower stages first, then a large batch."""
    cases = [
        (sizes, ranks, memory)
        for sizes in SIZES
        for ranks, memory in ((8, 80 * GB), (8, 24 * GB), (64, 40 * GB), (4, 141 * GB))
    ]
    # exactly at the limit: 96 bytes of state and 3,900 of one sequence; then less
    tiny = (6, 1, 10, 1, 10)
    cases += [(tiny, 1, 3996 * 10 // 9), (tiny, 1, 4439), (tiny, 1, 10)]
    cases += [((7, *tiny[1:]), 1, 4458)]  # 4,012 of 4,012.2 bytes
    for sizes, ranks, memory in cases:
        model = exercise.Model(*sizes)
        what = f"plan of {words(model)} on {ranks} device(s) with {memory:,} bytes"
        wanted = cheapest(sizes, ranks, memory)
        found = exercise.plan(model, ranks, memory)
        if wanted is None:
            expect.that(found is None, f"{what} is {found}, but nothing fits")
            continue
        expect.that(found is not None, f"{what} is None, expected {wanted}")
        expect.that(
            isinstance(found, tuple) and len(found) == 3,
            f"{what} is {found!r}; expected (stage, recompute, batch)",
        )
        for name, mine, right in zip(
            ("stage", "recompute", "batch"), found, wanted, strict=True
        ):
            expect.that(
                type(mine) is type(right) and mine == right,
                f"{what}: {name} is {mine!r}, expected {right!r}",
            )
