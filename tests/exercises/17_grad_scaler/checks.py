"""Checks of exercises/17_grad_scaler.py; torch.amp.GradScaler has the last word."""

import numbers
import time

import pytest
import torch
import torch.distributed as dist
from torch import nn

from workshop.grader import expect, variants

expect.nothing_is_averaged()
SIZES = (4, 1)  # numbers of a shard of each parameter
INF, NAN = float("inf"), float("nan")


def draw(seed, world_size):
    """For each rank a tensor for each of SIZES; the last rank has the first only."""
    generator = torch.Generator().manual_seed(seed)
    return [
        [
            torch.randn(n, generator=generator, dtype=torch.float64)
            for n in (SIZES if rank < world_size - 1 else SIZES[:1])
        ]
        for rank in range(world_size)
    ]


def named(gradient):
    """With a number for each that is not finite, so that it can be compared."""
    return gradient.nan_to_num(nan=777.0, posinf=888.0, neginf=999.0)


class Whole:
    """All shards in one process, trained by torch.amp.GradScaler."""

    def __init__(self, shards, scale, interval):
        self.shards = [[nn.Parameter(x.clone()) for x in own] for own in shards]
        flat = [parameter for own in self.shards for parameter in own]
        self.optimizer = torch.optim.AdamW(flat, 0.1)
        self.scaler = torch.amp.GradScaler("cpu", scale, growth_interval=interval)
        self.scaler.scale(torch.ones(()))  # it sets itself up

    def step(self, gradients):
        for own, grads in zip(self.shards, gradients, strict=True):
            for parameter, gradient in zip(own, grads, strict=True):
                parameter.grad = gradient.clone()
        self.scaler.step(self.optimizer)
        self.scaler.update()


def scales(
    bad,
    interval,
    steps,
    *,
    grows=2.0,
    shrinks=0.5,
    late=0,
    on_and_on=False,
    fixed=None,
    reset_by_overflow=True,
    reset_by_growth=True,
    counts_skipped=False,
):
    """The scale after each step; the keywords are what goes wrong."""
    scale, good, found = 8.0, 0, []
    for step in range(steps):
        skipped = step in bad
        good += counts_skipped or not skipped
        if skipped:
            scale, good = scale * shrinks, 0 if reset_by_overflow else good
        elif good == (fixed or interval) + late or (on_and_on and good > interval):
            scale, good = scale * grows, 0 if reset_by_growth else good
        found.append(scale)
    return found


MISTAKEN_SCALES = {
    "the scale were never doubled": {"grows": 1.0},
    "the scale were never halved": {"shrinks": 1.0},
    "the scale were multiplied by 4, not doubled": {"grows": 4.0},
    "the scale were divided by 4, not halved": {"shrinks": 0.25},
    "it took one good step more than `interval`": {"late": 1},
    "it took one good step less than `interval`": {"late": -1},
    "`interval` were 1: the scale is doubled after each good step": {"fixed": 1},
    "`interval` were always 3": {"fixed": 3},
    "`interval` were always 2": {"fixed": 2},
    "good steps needn't be in a row: an overflow starts the count again": {
        "reset_by_overflow": False
    },
    "the count weren't started again when the scale doubles": {
        "reset_by_growth": False
    },
    "each good step after `interval` of them doubled the scale again": {
        "on_and_on": True,
        "reset_by_growth": False,
    },
    "skipped steps were counted": {"counts_skipped": True},
}
RUNS = [  # (steps with an overflow, interval, steps)
    ((), 3, 10),
    ((), 1, 3),
    ((1, 5, 6), 2, 10),
    ((2, 4, 9), 4, 16),
    ((0, 3), 3, 12),
]


def has_a_number(scaler):
    kind = type(scaler.scale).__name__
    is_number = isinstance(scaler.scale, numbers.Real)
    expect.that(is_number, f"self.scale is a {kind} after step, not a float")


def at(step, interval, bad):
    overflows = f" and overflows in steps {list(bad)}" if bad else ""
    return f"step {step} (from 0), with interval {interval}{overflows}"


def play(exercise, rank, world_size, seed, bad, interval=3, steps=9):
    """Train in shards; ``bad``: in which step which rank has which number."""
    start = draw(seed, world_size)
    whole = Whole(start, 8.0, interval)
    mine = [nn.Parameter(x.clone()) for x in start[rank]]
    optimizer = torch.optim.AdamW(mine, 0.1)
    scaler = exercise.ShardedGradScaler(8.0, interval)
    for step in range(steps):
        gradients = draw(seed + 100 + step, world_size)
        gradients = [[whole.scaler.get_scale() * g for g in own] for own in gradients]
        if step in bad:
            where, value = bad[step]
            gradients[where][-1][0] = value
        whole.step(gradients)
        for parameter, gradient in zip(mine, gradients[rank], strict=True):
            parameter.grad = gradient.clone()
        if rank == 1:
            time.sleep(0.01)
        finite = scaler.unscale([parameter.grad for parameter in mine])
        what = f"whether step {step} is taken"
        expect.equal(finite, step not in bad, what)
        before = [named(parameter.grad) for parameter in mine]
        unstepped = [parameter.detach().clone() for parameter in mine]
        scaler.step(optimizer, finite)
        for parameter, right, old in zip(
            mine, whole.shards[rank], unstepped, strict=True
        ):
            what = f"a shard after step {step}"
            same = {"what it was before: the optimizer took no step": old}
            expect.that(
                step not in bad or torch.equal(parameter.data, old),
                f"a shard changed in step {step}: a gradient was not finite, so the "
                "optimizer must take no step",
            )
            expect.close(parameter.data, right.data, what, mistaken=same)
        for parameter, gradient in zip(mine, before, strict=True):
            expect.that(parameter.grad is not None, "a gradient is gone after step")
            expect.unchanged(named(parameter.grad), gradient, "a gradient after step")
        right = whole.scaler.get_scale()
        has_a_number(scaler)
        expect.close(scaler.scale, right, f"the scale after {at(step, interval, bad)}")
    good = whole.scaler.state_dict()["_growth_tracker"]
    what = f"good_steps after {steps} steps with interval {interval}"
    last_overflow = max(bad, default=-1)
    cause = ""
    if scaler.good_steps == steps - 1 - last_overflow:
        cause = "the count weren't started again when the scale doubles"
    expect.equal(scaler.good_steps, good, what, cause=cause)


@pytest.mark.ranks(3, 4)
def test_gradients_are_divided(exercise, rank, world_size, seed):
    """Finite gradients are divided by the scale, in place."""
    mine = draw(seed, world_size)[rank]
    scaled = [1024.0 * gradient for gradient in mine]
    finite = exercise.ShardedGradScaler(1024.0, 5).unscale(list(scaled))
    for gradient, right in zip(scaled, mine, strict=True):
        mistaken = {
            "what it was: it must be divided in place": 1024 * right,
            "multiplied by the scale, not divided": 1024**2 * right,
            "divided by the scale twice": right / 1024,
            "divided by the number of ranks, too: no gradients are summed here": (
                right / world_size
            ),
            "divided by the square root of the scale": 32 * right,
        }
        expect.close(gradient, right, "a gradient after unscale", mistaken=mistaken)
    expect.equal(finite, True, "whether all are finite")
    for dtype in (torch.float16, torch.float32):
        single = torch.tensor([1.5, -2.0, rank], dtype=dtype)
        given = 4 * single
        exercise.ShardedGradScaler(4.0, 5).unscale([given])
        name = str(dtype).removeprefix("torch.")
        expect.close(given, single, f"a gradient in {name} after unscale")


def taken_for_finite(found, everywhere, world_size):
    """The clause of a mistake that explains what unscale returned on this rank, or "".

    Args:
        found: by rank and number, what it returned if that rank had that number.
        everywhere: what it returned if all ranks had an infinite number.
    """
    noticed = {where for (where, value), finite in found.items() if not finite}
    if not noticed and not everywhere:
        return (
            "the step were skipped only if every rank has such a number: MAX tells "
            "whether any rank is bad, MIN whether all are good"
        )
    if len(noticed) == 1 and not everywhere:
        return f"only the gradients of rank {noticed.pop()} counted here"
    passed = {repr(value) for (_, value), finite in found.items() if finite}
    if passed in ({"nan"}, {"-inf"}) and len(noticed) == world_size:
        return f"{passed.pop()} were finite"
    return ""


@pytest.mark.ranks(3, 4)
def test_one_rank_is_enough(exercise, rank, world_size, seed):
    """One number that is infinite or nan, on any rank, stops the step on all ranks."""
    found, gradients = {}, {}
    for where in range(world_size):
        for value in (INF, -INF, NAN):
            mine = draw(seed, world_size)[rank]
            if rank == where:
                mine[0][-1] = value
            divided = [gradient / 2 for gradient in mine]
            finite = exercise.ShardedGradScaler(2.0, 5).unscale(list(mine))
            dist.barrier()  # a call that only some ranks make must not meet a later one
            found[where, value] = finite
            gradients[where, value] = mine, divided
    everywhere = exercise.ShardedGradScaler(2.0, 5).unscale([torch.tensor([INF])])
    cause = taken_for_finite(found, everywhere, world_size)
    for (where, value), finite in found.items():
        what = f"whether all are finite, with {value} on rank {where}"
        expect.equal(finite, False, what, cause=cause)
        for gradient, right in zip(*gradients[where, value], strict=True):
            what = f"a gradient after unscale, with {value} on rank {where}"
            expect.close(named(gradient), named(right), what)


@pytest.mark.ranks(3)
def test_large_numbers_are_finite(exercise, rank, world_size, seed):
    """Finite is each number for itself, even if the sum of all would be infinite."""
    for dtype in (torch.float16, torch.float32, torch.float64):
        large = torch.full((4,), 0.9 * torch.finfo(dtype).max, dtype=dtype)
        mine = [large.clone(), -large[:1]] if rank == 1 else [torch.ones(2).to(dtype)]
        finite = exercise.ShardedGradScaler(1.0, 5).unscale(mine)
        name = str(dtype).removeprefix("torch.")
        what = f"whether all are finite, with {large[0]:.3g} in {name} on rank 1"
        expect.equal(finite, True, what)


@pytest.mark.ranks(3)
def test_rank_without_gradients(exercise, rank, world_size, seed):
    """A rank that has no gradients, or an empty shard, learns from the others."""
    for value in (1.0, INF):
        for others, how in (([], "no shard"), ([torch.ones(0)], "an empty shard")):
            mine = [torch.full((2,), value)] if rank == 1 else list(others)
            finite = exercise.ShardedGradScaler(2.0, 5).unscale(mine)
            what = f"whether all are finite, with {value} on rank 1, {how} elsewhere"
            expect.equal(finite, value == 1.0, what)


def scales_of(exercise, bad, interval, steps):
    """The learner's scale after each step."""
    parameter = nn.Parameter(torch.ones(1))
    parameter.grad = torch.zeros(1)
    optimizer = torch.optim.SGD([parameter])
    scaler, found = exercise.ShardedGradScaler(8.0, interval), []
    for step in range(steps):
        scaler.step(optimizer, step not in bad)
        has_a_number(scaler)
        found.append(float(scaler.scale))
    return found


@pytest.mark.ranks(3)
def test_scale_of_whole_runs(exercise):
    """It doubles after `interval` good steps in a row, and an overflow halves it."""
    found = [scales_of(exercise, *run) for run in RUNS]
    cause = variants.cause(found, RUNS, scales, MISTAKEN_SCALES)
    for seen, (bad, interval, steps) in zip(found, RUNS, strict=True):
        for step, right in enumerate(scales(bad, interval, steps)):
            what = f"the scale after {at(step, interval, bad)}"
            expect.equal(seen[step], right, what, cause=cause)


@pytest.mark.ranks(3, 4)
def test_nine_steps(exercise, rank, world_size, seed):
    """Weights and scale are those of torch.amp.GradScaler, overflow or not."""
    play(exercise, rank, world_size, seed, {})
    bad = {1: (1, INF), 5: (0, NAN), 6: (world_size - 1, -INF)}
    play(exercise, rank, world_size, seed, bad, interval=2)
    play(exercise, rank, world_size, seed, {}, interval=1, steps=3)
    large = exercise.ShardedGradScaler(2.0**16, 1)
    large.step(torch.optim.SGD([nn.Parameter(torch.ones(1))]), True)
    expect.close(large.scale, 2.0**17, "the scale, which was 65536, after a good step")
    small = exercise.ShardedGradScaler(1.0, 2)
    small.step(torch.optim.SGD([nn.Parameter(torch.ones(1))]), False)
    expect.close(small.scale, 0.5, "the scale, which was 1.0, after an overflow")


@pytest.mark.ranks(4)
def test_one_number_travels(exercise, rank, world_size, seed, ledger):
    """Ranks tell each other one number, and not their gradients."""
    mine = [torch.ones(100), torch.ones(50)]
    ledger.clear()
    finite = exercise.ShardedGradScaler(2.0, 5).unscale(mine)
    sent = sum(row.numel for row in ledger.rows)
    expect.equal(finite, True, "whether all are finite")
    expect.right_way(
        sent <= 2 * world_size,
        f"this rank passed {sent} numbers to collectives; one is enough: "
        "whether its own gradients are finite",
    )
