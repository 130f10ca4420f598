"""Checks of exercises/08_global_batch.py."""

import random

import pytest
import torch
import torch.distributed as dist
from torch import nn

from workshop.grader import expect


@pytest.mark.ranks(1, init=False)
def test_shares_of_a_batch_that_divides(exercise):
    """shares: 32 samples on 4 ranks are 8 for each."""
    expect.equal(exercise.shares(32, 4), [8, 8, 8, 8], "shares(32, 4)")
    expect.equal(exercise.shares(32, 1), [32], "shares(32, 1)")


@pytest.mark.ranks(1, init=False)
def test_shares_differ_by_one_at_most(exercise, seed):
    """shares: no sample is lost or counted twice, and the larger shares are first."""
    draw = random.Random(seed)
    for _ in range(20):
        ranks = draw.randint(2, 9)
        batch = draw.randint(ranks, 60)
        more = batch % ranks
        expected = [batch // ranks + 1] * more + [batch // ranks] * (ranks - more)
        found = exercise.shares(batch, ranks)
        expect.equal(found, expected, f"shares({batch}, {ranks})")
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
    mistaken = {
        "1 / world_size of the right one: DDP divides the sum of the ranks by that, "
        "so multiply the loss by it": expected / world_size
    }
    what = "the gradient of the global batch"
    expect.close(found, expected, what, mistaken=mistaken)


@pytest.mark.ranks(1, init=False)
def test_rate_is_scaled_after_the_warm_up(exercise):
    """learning_rate: after the warm-up, a batch 4 times larger has 4 times the rate."""
    for step in (10, 11, 500):
        found = exercise.learning_rate(0.05, 32, 128, step, 10)
        expect.close(
            found, 0.2, f"learning_rate(0.05, 32, 128, step={step}, warmup=10)"
        )
    for step in (0, 3):
        found = exercise.learning_rate(0.1, 64, 16, step, 0)
        expect.close(found, 0.025, f"learning_rate(0.1, 64, 16, step={step}, warmup=0)")
    found = exercise.learning_rate(0.1, 32, 48, 7, 4)
    expect.close(found, 0.15, "learning_rate(0.1, 32, 48, step=7, warmup=4)")


@pytest.mark.ranks(1, init=False)
def test_rate_grows_by_equal_steps(exercise, seed):
    """learning_rate: step 0 uses the tuned rate, and the rate grows by equal steps."""
    factor, warmup = 2 + seed % 5, 8
    for step in range(warmup + 1):
        expected = 0.1 * (1 + (factor - 1) * step / warmup)
        found = exercise.learning_rate(0.1, 32, 32 * factor, step, warmup)
        what = f"learning_rate(0.1, 32, {32 * factor}, step={step}, warmup=8)"
        expect.close(found, expected, what)
    found = exercise.learning_rate(0.1, 64, 16, 0, 4)
    expect.close(found, 0.1, "learning_rate(0.1, 64, 16, step=0, warmup=4)")
