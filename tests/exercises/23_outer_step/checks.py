"""Checks of exercises/23_outer_step.py: against torch's own SGD in one process."""

import time

import pytest
import torch
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()

SHAPES = [(3, 2), (5,)]
RATE, MOMENTUM = 0.7, 0.9


def drawn(seed, index):
    generator = torch.Generator().manual_seed(100 * seed + index)
    return torch.randn(SHAPES[index], generator=generator, dtype=torch.float64)


def tensors(seed):
    return [drawn(seed, index) for index in range(len(SHAPES))]


def own_of(shared, seed, rank, number=0):
    """What this rank's inner steps have made of ``shared``."""
    moved = tensors(seed + 7 * rank + 31 * number + 3)
    return [s - 0.1 * (rank + 1) * m for s, m in zip(shared, moved, strict=True)]


def mean_of(lists):
    return [sum(parts) / len(parts) for parts in zip(*lists, strict=True)]


def total_of(lists):
    return [sum(parts) for parts in zip(*lists, strict=True)]


def compare_gradient(found, shared, every, rank):
    """The outer gradient that a rank has found; ``every`` rank's parameters."""
    differences = [[s - p for s, p in zip(shared, each, strict=True)] for each in every]
    right, total = mean_of(differences), total_of(differences)
    expect.equal(len(found), len(SHAPES), "tensors in the outer gradient")
    for index in range(len(SHAPES)):
        own = differences[rank][index]
        names = {
            "the other sign: with it the step leads away from where the ranks "
            "went": -right[index],
            "the mean of the parameters, not of the differences": mean_of(every)[index],
            "the sum over the ranks: divide it": total[index],
            "this rank's own difference: the others' are missing": own,
        }
        what = f"part {index} of the outer gradient"
        expect.close(found[index], right[index], what, mistaken=names)


@pytest.mark.ranks(3, 4)
def test_outer_gradient(exercise, rank, world_size, seed):
    """outer_gradient: the mean of the differences, on every rank."""
    if rank == 1:
        time.sleep(0.05)
    shared = tensors(seed)
    every = [own_of(shared, seed, r) for r in range(world_size)]
    given = [s.clone() for s in shared]
    own = [nn.Parameter(p.clone()) for p in every[rank]]
    found = exercise.outer_gradient(given, own)
    compare_gradient(found, shared, every, rank)
    for index, before in enumerate(shared):
        expect.unchanged(given[index], before, f"shared[{index}]")
        expect.unchanged(own[index].detach(), every[rank][index], f"own[{index}]")


def torch_steps(shared, gradients, velocity):
    """The same steps by torch.optim.SGD: [(shared, velocity) after each]."""
    parameters = [nn.Parameter(s.clone()) for s in shared]
    optimizer = torch.optim.SGD(parameters, RATE, MOMENTUM, nesterov=True)
    for parameter, buffer in zip(parameters, velocity, strict=True):
        optimizer.state[parameter]["momentum_buffer"] = buffer.clone()
    after = []
    for gradient in gradients:
        for parameter, part in zip(parameters, gradient, strict=True):
            parameter.grad = part.clone()
        optimizer.step()
        buffers = [optimizer.state[p]["momentum_buffer"].clone() for p in parameters]
        after.append(([p.detach().clone() for p in parameters], buffers))
    return after


@pytest.mark.ranks(3)
def test_outer_steps(exercise, rank, world_size, seed):
    """outer_step: three steps, as torch.optim.SGD takes them with nesterov=True."""
    shared = tensors(seed)
    gradients = [tensors(seed + 50 + number) for number in range(3)]
    velocity = tensors(seed + 90)  # of earlier outer steps
    right = torch_steps(shared, gradients, velocity)
    given = [s.clone() for s in shared]
    own = [nn.Parameter(p) for p in own_of(shared, seed, rank)]
    objects = list(own)
    for number, gradient in enumerate(gradients):
        before = [s.clone() for s in given]
        old = [v.clone() for v in velocity]
        ranks_own = [p.detach().clone() for p in own]
        passed = [g.clone() for g in gradient]
        exercise.outer_step(given, own, velocity, passed, RATE, MOMENTUM)
        for index in range(len(SHAPES)):
            b, g, v = before[index], gradient[index], right[number][1][index]
            label = f"[{index}] after outer step {number + 1}"
            stale = {
                "what it was: keep the momentum for the next step": old[index],
                "the gradient alone: the earlier steps are forgotten": g,
                "that with 1 - momentum times the gradient: add all of it": (
                    MOMENTUM * old[index] + (1 - MOMENTUM) * g
                ),
                "that with the learning rate times the gradient: add all of it": (
                    MOMENTUM * old[index] + RATE * g
                ),
            }
            expect.close(velocity[index], v, f"velocity{label}", mistaken=stale)
            names = {
                "that of plain momentum: Nesterov adds g and momentum times the new "
                "velocity": b - RATE * v,
                "a step from this rank's own parameters: start from shared": ranks_own[
                    index
                ]
                - RATE * (g + MOMENTUM * v),
                "uphill: subtract the step": b + RATE * (g + MOMENTUM * v),
                "what it was: change it in place": b,
            }
            s = right[number][0][index]
            expect.close(given[index], s, f"shared{label}", mistaken=names)
            names = {"what it was: this rank didn't take the step": ranks_own[index]}
            expect.close(own[index].detach(), s, f"own{label}", mistaken=names)
            expect.that(
                own[index] is objects[index],
                f"own[{index}] is another parameter now: the inner optimizer "
                "doesn't know it",
            )
            with torch.no_grad():
                own[index].add_(1.0)  # an inner step
            expect.close(
                given[index],
                s,
                f"shared{label} and an inner step",
                mistaken={
                    "changed by the inner step: own is no copy of it, but the same "
                    "memory": s + 1.0
                },
            )


@pytest.mark.ranks(3, 4)
def test_ranks_agree(exercise, rank, world_size, seed):
    """Both functions together: after two rounds all ranks have the same parameters."""
    shared = tensors(seed)
    velocity = [torch.zeros_like(s) for s in shared]
    expected, buffers = [s.clone() for s in shared], [v.clone() for v in velocity]
    for number in range(2):
        every = [own_of(expected, seed, r, number) for r in range(world_size)]
        own = [nn.Parameter(p.clone()) for p in every[rank]]
        gradient = exercise.outer_gradient(shared, own)
        compare_gradient(gradient, expected, every, rank)
        exercise.outer_step(shared, own, velocity, gradient, RATE, MOMENTUM)
        mean = mean_of(every)
        for index in range(len(SHAPES)):
            g = expected[index] - mean[index]
            buffers[index] = MOMENTUM * buffers[index] + g
            step = RATE * (g + MOMENTUM * buffers[index])
            expected[index] = expected[index] - step
            what = f"own[{index}] after round {number + 1}"
            expect.close(own[index].detach(), expected[index], what)
            expect.same_on_all_ranks(own[index].detach(), what)
