"""Checks of exercises/14_vocabulary_loss.py."""

import pytest
import torch
import torch.nn.functional as F

from grader import expect

PLACES, VOCABULARY = 12, 10


def problem(seed, rank, world_size, scale=1.0):
    """(all scores, targets, own scores, first): 10 entries, unequally divided."""
    generator = torch.Generator().manual_seed(seed)
    shape = PLACES, VOCABULARY
    scores = scale * torch.randn(*shape, generator=generator, dtype=torch.float64)
    # an order in which no rank has the largest of every place, and each has targets
    targets = (torch.randperm(PLACES, generator=generator) * 7) % VOCABULARY
    each = -(-VOCABULARY // world_size)
    own = scores.chunk(world_size, 1)[rank]
    return scores, targets, own.clone(), rank * each


@pytest.mark.ranks(3, 4)
def test_largest_score_of_all_ranks(exercise, rank, world_size, seed):
    """largest_of_all gives the largest of each place, on any rank; scores stay."""
    scores, _, own, _ = problem(seed, rank, world_size)
    before = own.clone()
    found = exercise.largest_of_all(own)
    expected = scores.max(dim=1).values
    local = own.max(dim=1).values
    expect.close(found, expected, "the largest scores", local=local)
    expect.close(own, before, "the scores that were given, afterwards")
    found = exercise.largest_of_all(own - 100)
    expect.close(found, expected - 100, "the largest scores, if all are negative")


@pytest.mark.ranks(3, 4)
def test_score_of_each_target(exercise, rank, world_size, seed):
    """score_of_target gives it on all ranks, whichever rank has the column."""
    scores, targets, own, first = problem(seed, rank, world_size)
    before = own.clone()
    found = exercise.score_of_target(own, targets, first)
    expected = scores.gather(1, targets[:, None]).squeeze(1)
    expect.close(found, expected, "the scores of the targets")
    expect.close(own, before, "the scores that were given, afterwards")


def loss_and_gradient(exercise, seed, rank, world_size, scale):
    """(loss, gradient) by the exercise, then the two of one process, own columns."""
    scores, targets, own, first = problem(seed, rank, world_size, scale)
    weights = 1 + torch.arange(PLACES, dtype=torch.float64)  # places count unequally
    own.requires_grad_()
    scores.requires_grad_()
    losses = exercise.VocabularyLoss.apply(own, targets, first)
    expected = F.cross_entropy(scores, targets, reduction="none")
    (losses * weights).sum().backward()
    (expected * weights).sum().backward()
    columns = scores.grad.chunk(world_size, 1)[rank]
    return (losses, own.grad), (expected, columns)


@pytest.mark.ranks(3, 4)
def test_loss_is_that_of_one_process(exercise, rank, world_size, seed):
    """The cross entropy of each place, the same on all ranks."""
    mine, whole = loss_and_gradient(exercise, seed, rank, world_size, 1.0)
    expect.close(mine[0], whole[0], "the losses")


@pytest.mark.ranks(3, 4)
def test_gradient_is_that_of_one_process(exercise, rank, world_size, seed):
    """Of the own scores, each place weighted differently."""
    mine, whole = loss_and_gradient(exercise, seed, rank, world_size, 1.0)
    expect.close(mine[1], whole[1], "the gradient of the own scores")


@pytest.mark.ranks(3, 4)
def test_large_scores(exercise, rank, world_size, seed):
    """Scores of some thousands: nothing overflows, and nothing is lost."""
    mine, whole = loss_and_gradient(exercise, seed, rank, world_size, 600.0)
    expect.close(mine[0], whole[0], "the losses of large scores")
    expect.close(mine[1], whole[1], "the gradient of large scores")


@pytest.mark.ranks(4)
def test_sends_little_and_nothing_in_backward(exercise, rank, world_size, seed, ledger):
    """One number for each place in each call, and no call in backward."""
    _, targets, own, first = problem(seed, rank, world_size)
    own.requires_grad_()
    ledger.clear()
    losses = exercise.VocabularyLoss.apply(own, targets, first)
    numbers = sum(row.numel for row in ledger.rows)
    expect.right_way(
        numbers <= 3 * PLACES,
        f"{numbers} numbers were sent for {PLACES} places: 3 for each are enough",
    )
    ledger.clear()
    losses.sum().backward()
    ops = ", ".join(ledger.ops())
    expect.right_way(not ops, f"backward called {ops}: it needs nothing of others")
