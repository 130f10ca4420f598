"""Checks of exercises/08_global_batch.py."""

import random

import pytest
import torch
import torch.distributed as dist
from torch import nn

from workshop.grader import expect, variants


def shares_of(batch, ranks, *, larger="first", more=0):
    """Samples of each rank; the keywords are what goes wrong."""
    each, rest = divmod(batch, ranks)
    rest += more
    return {
        "first": [each + 1] * rest + [each] * (ranks - rest),
        "last": [each] * (ranks - rest) + [each + 1] * rest,
        "all": [each + (rest > 0)] * ranks,
        "none": [each] * ranks,
        "whole rest first": [each + rest] + [each] * (ranks - 1),
        "whole rest last": [each] * (ranks - 1) + [each + rest],
        "full first": [
            max(
                0,
                min(batch, (rank + 1) * -(-batch // ranks)) - rank * -(-batch // ranks),
            )
            for rank in range(ranks)
        ],
    }[larger]


MISTAKEN_SHARES = {
    "the rest that doesn't divide were left out": {"larger": "none"},
    "each share were rounded up": {"larger": "all"},
    "the first rank took the whole rest": {"larger": "whole rest first"},
    "the last rank took the whole rest": {"larger": "whole rest last"},
    "the larger shares were the last ones": {"larger": "last"},
    "all ranks but the last were given a share that is rounded up": {
        "larger": "full first"
    },
    "one rank too many had a larger share": {"more": 1},
    "one rank too few had a larger share": {"more": -1},
}


def rate_of(
    rate,
    tuned,
    batch,
    step,
    warmup,
    *,
    scaled_by=None,
    start=None,
    growth="steps",
    longer=0,
    ahead=0,
    ends=True,
    instead=None,
):
    """By the linear rule with warm-up; the keywords are what goes wrong."""
    factor = batch / tuned if scaled_by is None else scaled_by(batch, tuned)
    begin = rate if start is None else start
    steps = warmup + longer if warmup else 0
    if instead == "rate in step 0" and step == 0:
        return rate
    if instead == "smaller at once" and factor < 1:
        return rate * factor
    if steps <= 0 or (ends and step >= steps):
        return rate * factor
    if growth == "at the end":
        return begin
    way = (step + ahead) / steps
    if growth == "factors":
        return rate * factor**way
    return begin + (rate * factor - begin) * way


MISTAKEN_RATES = {
    "the rate were multiplied by the square root of the factor": {
        "scaled_by": lambda batch, tuned: (batch / tuned) ** 0.5
    },
    "the factor were tuned_batch / global_batch": {
        "scaled_by": lambda batch, tuned: tuned / batch
    },
    "the factor were rounded down to a whole number": {
        "scaled_by": lambda batch, tuned: batch // tuned
    },
    "the rate were multiplied by global_batch, not by the factor": {
        "scaled_by": lambda batch, tuned: batch
    },
    "the rate were never scaled": {"scaled_by": lambda batch, tuned: 1.0},
    "a smaller batch left the rate as it was": {
        "scaled_by": lambda batch, tuned: max(1.0, batch / tuned)
    },
    "there were no warm-up": {"longer": -1000},
    "the warm-up began at 0, not at `rate`": {"start": 0.0},
    "step 0 had already made one step of the warm-up": {"ahead": 1},
    "the warm-up were one step longer": {"longer": 1},
    "the warm-up were one step shorter": {"longer": -1},
    "the rate grew by equal factors, not by equal steps": {"growth": "factors"},
    "the rate stayed the same until the end of the warm-up": {"growth": "at the end"},
    "the rate continued to grow after the warm-up": {"ends": False},
    "a smaller batch had no warm-up": {"instead": "smaller at once"},
    "step 0 used `rate` even without a warm-up": {"instead": "rate in step 0"},
}
AFTER_THE_WARM_UP = [
    *((0.05, 32, 128, step, 10) for step in (10, 11, 500)),
    *((0.1, 64, 16, step, 0) for step in (0, 3)),
    (0.1, 32, 48, 7, 4),
]


def in_the_warm_up(seed):
    """The arguments of learning_rate: a batch that is 2 to 6 times as large."""
    larger = [(0.1, 32, 32 * (2 + seed % 5), step, 8) for step in range(9)]
    return [*larger, (0.1, 64, 16, 0, 4), (0.1, 64, 16, 3, 4)]


def check_rates(exercise, seed, cases):
    every = AFTER_THE_WARM_UP + in_the_warm_up(seed)
    cause = variants.cause_in(exercise.learning_rate, every, rate_of, MISTAKEN_RATES)
    for rate, tuned, batch, step, warmup in cases:
        found = exercise.learning_rate(rate, tuned, batch, step, warmup)
        what = f"learning_rate({rate}, {tuned}, {batch}, step={step}, warmup={warmup})"
        right = rate_of(rate, tuned, batch, step, warmup)
        expect.close(found, right, what, cause=cause)


@pytest.mark.ranks(1, init=False)
def test_shares_of_a_batch_that_divides(exercise):
    """shares: 32 samples on 4 ranks are 8 for each."""
    expect.equal(exercise.shares(32, 4), [8, 8, 8, 8], "shares(32, 4)")
    expect.equal(exercise.shares(32, 1), [32], "shares(32, 1)")


@pytest.mark.ranks(1, init=False)
def test_shares_differ_by_one_at_most(exercise, seed):
    """shares: no sample is lost or counted twice, and the larger shares are first."""
    draw = random.Random(seed)
    numbers = [draw.randint(2, 9) for _ in range(20)]
    cases = [(draw.randint(ranks, 60), ranks) for ranks in numbers]
    cause = variants.cause_in(exercise.shares, cases, shares_of, MISTAKEN_SHARES)
    for batch, ranks in cases:
        expected = shares_of(batch, ranks)
        found = exercise.shares(batch, ranks)
        expect.equal(found, expected, f"shares({batch}, {ranks})", cause=cause)
        for share, right in zip(found, expected, strict=True):
            expect.number(share, right, f"a share of shares({batch}, {ranks})")


@pytest.mark.ranks(1, init=False)
def test_rank_without_samples_is_refused(exercise):
    """shares: refuse fewer samples than ranks; a rank's mean would be 0 / 0."""
    for batch, ranks in ((3, 4), (15, 48), (0, 2)):
        call, words = f"shares({batch}, {ranks})", (str(batch), str(ranks))
        expect.raises(ValueError, exercise.shares, batch, ranks, words=words, what=call)
    expect.equal(exercise.shares(4, 4), [1, 1, 1, 1], "shares(4, 4)")


@pytest.mark.ranks(3, 4)
def test_gradient_is_that_of_the_global_batch(exercise, rank, world_size, seed):
    """loss_of_rank: averaged over ranks, the gradient equals that of one process."""
    draw = torch.Generator().manual_seed(seed)
    global_batch = 4 * world_size + 2  # does not divide: shares of 5 and of 4
    x = torch.randn(global_batch, 5, dtype=torch.float64, generator=draw)
    weight = torch.randn(1, 5, dtype=torch.float64, generator=draw)
    sizes = [5, 5] + [4] * (world_size - 2)
    start = sum(sizes[:rank])

    def gradient(rows, reduce):
        model = nn.Linear(5, 1, bias=False, dtype=torch.float64)
        with torch.no_grad():
            model.weight.copy_(weight)
        losses = (model(rows).squeeze(1) - rows.sum(1)).square()
        before = losses.detach().clone()
        loss = reduce(losses)
        expect.unchanged(losses, before, "the losses that were given to loss_of_rank")
        shape = list(loss.shape)
        expect.that(not shape, f"loss_of_rank returned {shape}, expected one number")
        expect.that(loss.requires_grad, "loss_of_rank returned a loss without gradient")
        loss.backward()
        apart = "backward() of the loss doesn't reach the model: it isn't computed from"
        expect.that(model.weight.grad is not None, f"{apart} the losses as a tensor")
        return model.weight.grad

    expected = gradient(x, torch.mean)
    mine = x[start : start + sizes[rank]]
    found = gradient(
        mine, lambda losses: exercise.loss_of_rank(losses, global_batch, world_size)
    )
    dist.all_reduce(found)
    found /= world_size  # as DDP does
    parts = x.split(sizes)

    def by_rule(reduce):
        return sum(gradient(part, reduce) for part in parts) / world_size

    each = global_batch // world_size
    mistaken = {
        "1 / world_size of the right one: DDP divides the sum of the ranks by that, "
        "so multiply the loss by it": expected / world_size,
        "the mean of the ranks' means, in which a sample of a smaller share counts "
        "for more": by_rule(torch.mean),
        "that of the sum over all samples, and each must count 1 / global_batch": (
            expected * global_batch
        ),
        "that of the mean over the ranks of their sums: each sample must count "
        "1 / global_batch": expected * global_batch / world_size,
        "divided by the share and by global_batch: take the sum of the losses, not "
        "their mean": by_rule(lambda own: own.mean() * world_size / global_batch),
        "divided by world_size, which is not the number of samples": (
            expected * global_batch / world_size**2
        ),
        "that of shares of equal size: global_batch // world_size is not each "
        "rank's share": by_rule(lambda own: own.sum() / each),
    }
    what = "the gradient of the global batch"
    expect.close(found, expected, what, mistaken=mistaken)


@pytest.mark.ranks(1, init=False)
def test_rate_is_scaled_after_the_warm_up(exercise, seed):
    """learning_rate: after the warm-up, a batch 4 times larger has 4 times the rate."""
    check_rates(exercise, seed, AFTER_THE_WARM_UP)


@pytest.mark.ranks(1, init=False)
def test_rate_grows_by_equal_steps(exercise, seed):
    """learning_rate: step 0 uses the tuned rate, and the rate grows by equal steps."""
    check_rates(exercise, seed, in_the_warm_up(seed))
