"""Checks of exercises/19_three_hangs.py: every rank arrives, the result is right."""

import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

NO_COLLECTIVE = "send", "recv", "barrier"


def came_through_collectives(ledger, function, least=1):
    """Files, the store and messages of two ranks would repair the hangs, too."""
    calls = sum(row.op not in NO_COLLECTIVE and bool(row.line) for row in ledger.rows)
    times = "once" if least == 1 else f"{least} times, once in each step"
    expect.right_way(
        calls >= least,
        f"{function} called {calls} collectives on this rank: keep the collective, "
        f"which every rank must call {times}",
    )


def numbers(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator).double() + 0.5


@pytest.mark.ranks(3, 4)
def test_report_loss(exercise, rank, world_size, seed, ledger):
    """Rank 0 gets the mean of all ranks, the others None, and the loss is unchanged."""
    losses = numbers(seed, world_size)
    loss = losses[rank].clone()
    if rank == 1:
        time.sleep(0.2)
    found = exercise.report_loss(loss)
    if rank == 0:
        expect.close(found, losses.mean(), "the mean loss", local=losses[rank])
    else:
        expect.equal(found, None, "what a rank other than 0 gets")
    expect.equal(loss, losses[rank], "the caller's loss")
    came_through_collectives(ledger, "report_loss")


def rows_of(seed, world_size):
    """Per rank a list of batches; rank 1 has none, rank 2 has most."""
    counts = [[2, 3], [], [4, 1, 2], [5]][:world_size]
    return [
        [numbers(seed + 10 * r + n, rows, 3) for n, rows in enumerate(each)]
        for r, each in enumerate(counts)
    ]


def mean_of_means(batches):
    return torch.stack([batch.mean(dim=0) for batch in batches]).mean(dim=0)


@pytest.mark.ranks(3, 4)
def test_mean_of_batches(exercise, rank, world_size, seed, ledger):
    """The mean of all rows, although one rank has no batch and one has most."""
    everyone = rows_of(seed, world_size)
    rows = torch.cat([batch for mine in everyone for batch in mine])
    given = [batch.clone() for batch in everyone[rank]]
    found = exercise.mean_of_batches(given)
    of_rows = [torch.cat(mine).mean(dim=0) for mine in everyone if mine]
    of_batches = [mean_of_means(mine) for mine in everyone if mine]
    batches = [batch for mine in everyone for batch in mine]
    mistaken = {
        "the mean of the ranks' means": sum(of_rows) / len(of_rows),
        "the mean of the batches' means": mean_of_means(batches),
        "the mean of the ranks' means of their batches' means": (
            sum(of_batches) / len(of_batches)
        ),
        "the mean of the ranks' means, with zeros of a rank without rows": (
            sum(of_rows) / world_size
        ),
        "the mean of the ranks' means of their batches' means, with zeros of a rank "
        "without rows": sum(of_batches) / world_size,
    }
    expect.close(found, rows.mean(dim=0), "the mean of all rows", mistaken=mistaken)
    expect.equal(given, everyone[rank], "the batches of this rank")
    came_through_collectives(ledger, "mean_of_batches")


class Training:
    """Losses of this rank; each step is a collective, as in DDP."""

    def __init__(self, losses):
        self.losses, self.steps = losses, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.steps == len(self.losses):
            raise StopIteration
        dist.barrier()  # not like any call of an answer, so none can be taken for it
        self.steps += 1
        return self.losses[self.steps - 1].clone()


def some_losses(seed, world_size):
    """[60, W]: each rank's loss falls to 0, at a height of its own.

    A program that decides by another loss than the mean stops some steps away from it.
    """
    falling = torch.linspace(4.0, 0.0, 60, dtype=torch.float64)[:, None]
    heights = torch.tensor([1.6, 0.5, 1.75, 1.0])[:world_size]  # neither end is rank 0
    return falling * heights * numbers(seed, 1)


def check_steps(found, losses, limit, what="the number of steps"):
    """``losses`` are those of all ranks, [steps, W]."""

    def first(values):
        return next((n for n, x in enumerate(values.tolist(), 1) if x < limit), None)

    right = first(losses.mean(dim=1))
    deciders = {
        "rank 0's loss": losses[:, 0],
        "the largest loss of the ranks": losses.amax(dim=1),
        "the smallest loss of the ranks": losses.amin(dim=1),
        "the sum of the ranks' losses": losses.sum(dim=1),
    }
    alike = [words for words, each in deciders.items() if first(each) == found != right]
    told = f"is {found}, where {' or '.join(alike)} is below the limit first"
    expect.that(not alike, f"{what}: {told}; expected {right}")
    expect.equal(found, right, what)
    return right


@pytest.mark.ranks(3, 4)
def test_train_until(exercise, rank, world_size, seed, ledger):
    """All ranks stop after the same step: the first with a mean below the limit."""
    losses = some_losses(seed, world_size)
    means = losses.mean(dim=1)
    limit = float(means[40] + means[41]) / 2
    training = Training(losses[:, rank])
    found = exercise.train_until(limit, training)
    everyone = [None] * world_size
    dist.all_gather_object(everyone, training.steps)
    right = check_steps(found, losses, limit)
    expect.equal(everyone, [right] * world_size, "the steps that the ranks did")
    came_through_collectives(ledger, "train_until", right)


@pytest.mark.ranks(3)
def test_train_until_the_first_step_is_enough(exercise, rank, seed):
    """The mean is below the limit at once, although one rank's loss isn't."""
    losses = torch.tensor([[0.1, 0.2, 0.9], [0.0, 0.0, 0.0]]).double()
    found = exercise.train_until(0.5, Training(losses[:, rank]))
    check_steps(found, losses, 0.5)
    losses = torch.tensor([[0.75, 0.0, 0.75], [0.0, 0.0, 0.0]]).double()
    found = exercise.train_until(0.5, Training(losses[:, rank]))
    what = "the number of steps, where the first mean is the limit and isn't below it"
    check_steps(found, losses, 0.5, what)
