"""Checks of exercises/20_lost_rank.py: ranks are lost by plan, at the worst moments."""

import time
from dataclasses import dataclass

import pytest
import torch
import torch.distributed as dist
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()

WIDTH, BATCH, STEPS = 3, 7, 4  # no number of ranks from 2 on divides the batch
MEANINGLESS = 1000.0  # what an add_up leaves that has lost a member


class Killed(BaseException):
    """This rank is lost; no `except Exception` keeps it."""


@dataclass(frozen=True)
class Loss:
    """Which ranks are lost, when, and who notices it at once.

    Args:
        attempt: counted from 0.
        call: the add_up of this attempt, from 0; None: in all_well.
        ranks: that are lost.
        notice: ranks whose add_up raises; others get meaningless values, no error.
    """

    attempt: int
    call: int | None
    ranks: tuple[int, ...]
    notice: tuple[int, ...] = ()


class PlannedRun:
    """Begins attempts, adds up over real groups, and loses ranks by plan."""

    def __init__(self, rank, world_size, plan, model):
        self.rank, self.model = rank, model
        self.failed = False  # the attempt before this one
        self.before = copies_of(model)  # the parameters when it began
        self.plan = {loss.attempt: loss for loss in plan}
        self.attempts = -1
        self.calls = 0
        self.open = False  # an attempt that no vote has ended
        self.broken = False  # a member was lost in this attempt
        self.dead = False
        self.living = list(range(world_size))
        self.groups = {tuple(self.living): dist.group.WORLD}
        for loss in plan:
            self.living = [r for r in self.living if r not in loss.ranks]
            self.groups[tuple(self.living)] = dist.new_group(self.living)
        self.living = list(range(world_size))

    @property
    def loss(self):
        return self.plan.get(self.attempts)

    def begin(self):
        self.stay_dead()
        expect.that(
            not self.open,
            f"begin was called on rank {self.rank}, and the attempt before had no "
            "all_well: the others wait for its answer",
        )
        self.check_unchanged()
        self.before = copies_of(self.model)
        self.attempts += 1
        expect.that(
            self.attempts < 3 * STEPS,
            f"rank {self.rank} began {self.attempts} attempts for {STEPS} batches",
        )
        self.open, self.broken, self.calls = True, False, 0
        return list(self.living)

    def check_unchanged(self):
        """Nothing is left of an attempt that failed."""
        for name, parameter in self.model.named_parameters():
            same = torch.equal(parameter.detach(), self.before[name])
            expect.that(
                same or not self.failed,
                f"an attempt failed, and {name} has changed on rank {self.rank}: it "
                "took a step that not all ranks took",
            )

    def stay_dead(self):
        if self.dead:
            raise Killed

    def add_up(self, tensor):
        self.stay_dead()
        expect.that(self.open, "add_up was called before begin")
        if self.broken:
            tensor.fill_(MEANINGLESS)
            raise ConnectionError("Connection closed by peer")
        call, loss = self.calls, self.loss
        self.calls += 1
        if loss is None or loss.call != call:
            dist.all_reduce(tensor, group=self.groups[tuple(self.living)])
            return
        self.lose(loss)
        tensor.fill_(MEANINGLESS)
        if self.rank in loss.notice:
            raise ConnectionError("Connection closed by peer")

    def lose(self, loss):
        """Die, or remember that a member did."""
        self.broken = True
        self.living = [r for r in self.living if r not in loss.ranks]
        if self.rank in loss.ranks:
            self.dead = True
            raise Killed

    def all_well(self, well):
        self.stay_dead()
        expect.that(self.open, "all_well was called twice for one attempt")
        expect.that(
            isinstance(well, bool),
            f"all_well was given a {type(well).__name__}, expected True or False",
        )
        if self.loss and not self.broken:
            self.lose(self.loss)  # also if there were fewer calls than planned
        self.open = False
        answer = torch.tensor([int(well and not self.broken)])
        group = self.groups[tuple(self.living)]
        dist.all_reduce(answer, dist.ReduceOp.MIN, group=group)
        self.failed = not answer
        return bool(answer)


def drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def copies_of(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def model_of(seed):
    model = nn.Sequential(nn.Linear(WIDTH, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    with torch.no_grad():
        for index, parameter in enumerate(model.parameters()):
            parameter.copy_(drawn(seed + index, *parameter.shape))
    return model


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def batches_of(seed):
    return [
        (drawn(seed + 50 + i, BATCH, WIDTH), drawn(seed + 70 + i, BATCH, 2))
        for i in range(STEPS)
    ]


def alone(seed, order, scales=(), parts=(), of_parts=torch.mean):
    """Parameters after these batches on one process.

    Args:
        scales: of the gradient of each step.
        parts: of the batch of each step, each with a mean of its samples.
        of_parts: what becomes of these means.
    """
    model = model_of(seed)
    optimizer = optimizer_of(model)
    batches = batches_of(seed)
    for step, index in enumerate(order):
        inputs, targets = batches[index]
        optimizer.zero_grad()
        squares = (model(inputs) - targets).square()
        loss = squares.sum() / BATCH
        if parts:
            means = [part.sum(1).mean() for part in squares.tensor_split(parts[step])]
            loss = of_parts(torch.stack(means))
        if scales:
            loss = loss * scales[step]
        loss.backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def members_by_step(world_size, plan):
    """How many members take each step, and how many tried it."""
    taken, tried, living, attempts = [], [], world_size, 0
    losses = {loss.attempt: loss for loss in plan}
    for _ in range(STEPS):
        failed = 0
        while attempts in losses:
            living -= len(losses[attempts].ranks)
            attempts += 1
            failed += 1
        attempts += 1
        taken.append(living)
        tried.append(failed)
    return taken, tried


def compare_run(exercise, rank, world_size, seed, plan):
    model = model_of(seed)
    run = PlannedRun(rank, world_size, plan, model)
    optimizer = optimizer_of(model)
    try:
        failed = exercise.train(model, optimizer, batches_of(seed), run, rank)
    except Killed:
        return
    taken, tried = members_by_step(world_size, plan)
    whole = list(range(STEPS))
    right = alone(seed, whole)
    skipped = [i for i in whole if not tried[i]]
    names = {
        "of a run whose gradients were divided by the number of ranks": alone(
            seed, whole, [1 / number for number in taken]
        ),
        "of a run that counted the gradient once for each rank": alone(
            seed, whole, taken
        ),
        "of a run with the mean of each rank's mean: parts have other sizes": alone(
            seed, whole, parts=taken
        ),
        "of a run that divided by each rank's own samples, and not by B": alone(
            seed, whole, parts=taken, of_parts=torch.sum
        ),
        "of a run that added up each rank's mean squared error": alone(
            seed, whole, [1 / 2] * STEPS, parts=taken, of_parts=torch.sum
        ),
        "of a run whose loss was also divided by the width of a target": alone(
            seed, whole, [1 / 2] * STEPS
        ),
        "of a run whose loss wasn't divided by B": alone(seed, whole, [BATCH] * STEPS),
    }
    if plan:
        twice = [i for i in whole for _ in range(1 + tried[i])]
        names["of a run that skipped the batch of a failed attempt"] = alone(
            seed, skipped
        )
        names["of a run that took the failed step as well"] = alone(seed, twice)
    for index, (name, parameter) in enumerate(model.named_parameters()):
        value = parameter.detach()
        expect.that(
            value.isfinite().all() and value.abs().max() < MEANINGLESS / 50,
            f"{name} on rank {rank} is {value.flatten()[0]:.4g}, expected "
            f"{right[index].flatten()[0]:.4g}: the step used gradients that a failed "
            "attempt had left",
        )
        mistaken = {key: values[index] for key, values in names.items()}
        what = f"{name} after {STEPS} batches"
        expect.close(value, right[index], what, mistaken=mistaken)
    expect.equal(failed, sum(tried), "the number of failed attempts")


@pytest.mark.ranks(1)
def test_own_samples(exercise):
    """own_samples: all samples, each once, in parts that differ by at most one."""
    for size, members in ((7, [0, 1, 2]), (8, [1, 2, 5]), (5, [4]), (6, [0, 3, 4, 9])):
        samples = drawn(size, size, 2)
        parts = [exercise.own_samples(samples, members, rank) for rank in members]
        label = f"of {size} samples on ranks {members}"
        sizes = [len(part) for part in parts]
        expect.that(
            sum(sizes) == size, f"the parts {label} have {sizes} samples, not {size}"
        )
        expect.that(
            max(sizes) - min(sizes) <= 1,
            f"the parts {label} have {sizes} samples: they differ by more than 1",
        )
        expect.equal(torch.cat(parts), samples, f"all parts {label}, joined")


@pytest.mark.ranks(3, 4)
def test_nothing_is_lost(exercise, rank, world_size, seed):
    """train: every rank stays, and a batch of 7 isn't divisible by their number."""
    if rank == 1:
        time.sleep(0.05)
    compare_run(exercise, rank, world_size, seed, [])


@pytest.mark.ranks(3, 4)
def test_a_rank_is_lost_and_all_notice(exercise, rank, world_size, seed):
    """train: the last rank is lost inside an all-reduce; all others get an error."""
    last = world_size - 1
    loss = Loss(attempt=1, call=2, ranks=(last,), notice=tuple(range(last)))
    compare_run(exercise, rank, world_size, seed, [loss])


@pytest.mark.ranks(4)
def test_a_rank_is_lost_and_one_notices(exercise, rank, world_size, seed):
    """train: rank 0 is lost in the last add_up; one rank gets an error, two don't."""
    loss = Loss(attempt=2, call=3, ranks=(0,), notice=(2,))
    compare_run(exercise, rank, world_size, seed, [loss])


@pytest.mark.ranks(4)
def test_a_rank_is_lost_in_the_vote(exercise, rank, world_size, seed):
    """train: every sum was complete, and then rank 1 is lost before it has voted."""
    loss = Loss(attempt=0, call=None, ranks=(1,))
    compare_run(exercise, rank, world_size, seed, [loss])


@pytest.mark.ranks(4)
def test_two_losses(exercise, rank, world_size, seed):
    """train: one rank is lost, and another one while the step is repeated."""
    first = Loss(attempt=1, call=0, ranks=(2,), notice=(0, 1, 3))
    second = Loss(attempt=2, call=1, ranks=(0,), notice=(3,))
    compare_run(exercise, rank, world_size, seed, [first, second])
