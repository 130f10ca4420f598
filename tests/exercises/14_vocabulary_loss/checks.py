"""Checks of exercises/14_vocabulary_loss.py."""

import time

import pytest
import torch
import torch.nn.functional as F

from workshop.grader import expect

expect.nothing_is_averaged()

PLACES, VOCABULARY = 12, 10
SIZES = {3: [5, 2, 3], 4: [1, 4, 2, 3]}  # columns of each rank


def problem(seed, rank, world_size, scale=1.0):
    """(all scores, targets, own scores, first): 10 entries, unequally divided."""
    generator = torch.Generator().manual_seed(seed)
    shape = PLACES, VOCABULARY
    scores = scale * torch.randn(*shape, generator=generator, dtype=torch.float64)
    # an order in which no rank has the largest of every position, and each has targets
    targets = (torch.randperm(PLACES, generator=generator) * 7) % VOCABULARY
    sizes = SIZES[world_size]
    own = scores.split(sizes, 1)[rank]
    return scores, targets, own.clone(), sum(sizes[:rank])


@pytest.mark.ranks(3, 4)
def test_largest_score_of_all_ranks(exercise, rank, world_size, seed):
    """largest_of_all gives each position's largest score; the scores don't change."""
    scores, _, own, _ = problem(seed, rank, world_size)
    before = own.clone()
    if rank == 1:
        time.sleep(0.1)
    found = exercise.largest_of_all(own)
    expected = scores.max(dim=1).values
    local = own.max(dim=1).values
    maxima = torch.stack([s.amax(1) for s in scores.split(SIZES[world_size], 1)])
    mistaken = {
        "the sum of the ranks' largest": maxima.sum(0),
        "the mean of the ranks' largest": maxima.mean(0),
        "one maximum for all positions": expected.max().expand(PLACES),
    }
    what = "the largest scores"
    expect.close(found, expected, what, local=local, mistaken=mistaken)
    expect.unchanged(own, before, "the scores that were given, afterwards")
    found = exercise.largest_of_all(own - 1e5)
    expect.close(found, expected - 1e5, "the largest scores, if all are negative")


def nearest_columns(scores, targets, sizes):
    """The score in the column nearest to the target, added up over the ranks."""
    total, first = torch.zeros_like(scores[:, 0]), 0
    for own in scores.split(sizes, 1):
        column = (targets - first).clamp(0, own.shape[1] - 1)
        total += own.gather(1, column[:, None]).squeeze(1)
        first += own.shape[1]
    return total


@pytest.mark.ranks(3, 4)
def test_score_of_each_target(exercise, rank, world_size, seed):
    """score_of_target gives all ranks the score, whichever rank has the column."""
    scores, targets, own, first = problem(seed, rank, world_size)
    before, entries = own.clone(), targets.clone()
    if rank == 1:
        time.sleep(0.1)
    found = exercise.score_of_target(own, targets, first)
    expected = scores.gather(1, entries[:, None]).squeeze(1)
    here = (entries >= first) & (entries < first + own.shape[1])
    mistaken = {
        "what this rank has, never added up": expected.where(here, 0),
        "added up over ranks that take another column where they lack the target's": (
            nearest_columns(scores, entries, SIZES[world_size])
        ),
        "the larger of the target's score and 0": expected.clamp(min=0),
        "the mean over the ranks, where their sum is wanted": expected / world_size,
    }
    expect.close(found, expected, "the scores of the targets", mistaken=mistaken)
    expect.unchanged(own, before, "the scores that were given, afterwards")
    expect.unchanged(targets, entries, "the targets that were given, afterwards")
    elsewhere = torch.zeros_like(entries)  # all of them in the columns of rank 0
    found = exercise.score_of_target(own, elsewhere, first)
    what = "the scores of the targets, if rank 0 has all of them"
    expect.close(found, scores[:, 0], what)


def loss_and_gradient(exercise, seed, rank, world_size, scale):
    """(loss, gradient) by the exercise, then the two of one process, own columns."""
    scores, targets, own, first = problem(seed, rank, world_size, scale)
    weights = 1 + torch.arange(PLACES, dtype=torch.float64)  # positions count unequally
    own.requires_grad_()
    scores.requires_grad_()
    losses = exercise.VocabularyLoss.apply(own, targets, first)
    expected = F.cross_entropy(scores, targets, reduction="none")
    (losses * weights).sum().backward()
    (expected * weights).sum().backward()
    columns = scores.grad.split(SIZES[world_size], 1)[rank]
    expect.that(own.grad is not None, "the own scores got no gradient")
    return (losses, own.grad), (expected, columns)


@pytest.mark.ranks(3, 4)
def test_loss_is_that_of_one_process(exercise, rank, world_size, seed):
    """The cross entropy of each position, the same on all ranks."""
    mine, whole = loss_and_gradient(exercise, seed, rank, world_size, 1.0)
    expect.close(mine[0], whole[0], "the losses")


@pytest.mark.ranks(3, 4)
def test_gradient_is_that_of_one_process(exercise, rank, world_size, seed):
    """Gradients of this rank's scores, each position weighted differently."""
    mine, whole = loss_and_gradient(exercise, seed, rank, world_size, 1.0)
    weights = 1 + torch.arange(PLACES, dtype=torch.float64)[:, None]
    _, targets, own, first = problem(seed, rank, world_size)
    last = own.shape[1] - 1
    taken = weights * F.one_hot((targets - first).clamp(0, last), last + 1)
    mine_taken = taken * ((targets >= first) & (targets <= first + last))[:, None]
    each = mine_taken / weights
    of_all = [weights * each.amax(0), weights * each.sum(0)]  # once, or once for each
    at_all = [whole[1] + mine_taken - less for less in of_all]
    if not torch.allclose(mine[1], at_all[0]):
        at_all.reverse()
    mistaken = {
        "less by 1 at every position in the columns of all targets: index positions "
        "and columns together": at_all[0],
        "not multiplied by the gradient of each position's loss": whole[1] / weights,
        f"{world_size} times too big: summed over ranks that all had the whole": (
            world_size * whole[1]
        ),
        "divided by the number of positions": whole[1] / PLACES,
        "less by 1 in a column of each position, also where the target is not local": (
            whole[1] + mine_taken - taken
        ),
        "not less by 1 in the column of each target": whole[1] + mine_taken,
        "multiplied by the gradient of each position's loss, except for the minus 1": (
            whole[1] + mine_taken - mine_taken / weights
        ),
    }
    what = "the gradient of the own scores"
    expect.close(mine[1], whole[1], what, mistaken=mistaken)


@pytest.mark.ranks(3)
def test_backward_can_be_called_again(exercise, rank, world_size, seed):
    """Two backward passes through one graph give the same gradient twice."""
    _, targets, own, first = problem(seed, rank, world_size)
    losses = exercise.VocabularyLoss.apply(own.requires_grad_(), targets, first)
    changed = "it was changed by the first: copy what was saved before you change it"
    told = f"the gradient of the own scores, at the second backward pass: {changed}"
    passes = []
    for _ in range(2):
        try:
            passes += torch.autograd.grad(losses.sum(), own, retain_graph=True)
        except RuntimeError as error:
            expect.that("modified by an inplace" not in str(error), told)
            raise
    expect.that(torch.equal(*passes), told)


@pytest.mark.ranks(3, 4)
def test_large_scores(exercise, rank, world_size, seed):
    """Scores of several thousand: nothing overflows, and nothing is lost."""
    mine, whole = loss_and_gradient(exercise, seed, rank, world_size, 600.0)
    expect.close(mine[0], whole[0], "the losses of large scores")
    expect.close(mine[1], whole[1], "the gradient of large scores")


@pytest.mark.ranks(4)
def test_sends_little_and_nothing_in_backward(exercise, rank, world_size, seed, ledger):
    """One number for each position in each call, and no call in backward."""
    _, targets, own, first = problem(seed, rank, world_size)
    own.requires_grad_()
    ledger.clear()
    losses = exercise.VocabularyLoss.apply(own, targets, first)
    many = {row.op for row in ledger.rows if row.elements > PLACES}
    expect.right_way(
        not many,
        f"more than {PLACES} numbers went through {', '.join(sorted(many))} for "
        f"{PLACES} positions: each call needs one number for each position",
    )
    ledger.clear()
    losses.sum().backward()
    ops = ", ".join(ledger.ops())
    expect.right_way(not ops, f"backward called {ops}: it needs no communication")


@pytest.mark.ranks(3)
def test_scores_in_float32(exercise, rank, world_size, seed):
    """Scores in float32, as most are, give losses in float32."""
    scores, targets, own, first = problem(seed, rank, world_size)
    losses = exercise.VocabularyLoss.apply(own.float(), targets, first)
    right = F.cross_entropy(scores.float(), targets, reduction="none")
    expect.close(losses, right, "the losses in float32", atol=1e-5, rtol=1e-5)
