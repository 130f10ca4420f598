"""Checks of exercises/23_from_a_peer.py: continues like a run that lost no rank."""

import copy
import time

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect

BEFORE, AFTER = 3, 3  # steps before a rank is lost, and after it is there again
OLD = "what this rank had before: nothing has replaced it"


class Scaled(nn.Module):
    """A layer, and a buffer that each step changes: no parameter, but it counts."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x):
        return self.layer(x) * self.scale


def new_training(seed):
    torch.manual_seed(seed)
    model = Scaled().double()
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def batch(seed, step, ranks):
    generator = torch.Generator().manual_seed(seed * 1000 + step)
    shape = 4 * ranks, 3
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    return x, torch.stack([x.sum(1), x[:, 0] * x[:, 1]], 1)


def take(model, optimizer, seed, step, ranks, rank=None):
    """A step: in one process, or this rank's part of it."""
    x, y = batch(seed, step, ranks)
    if rank is not None:
        x, y = x.chunk(ranks)[rank], y.chunk(ranks)[rank]
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    if rank is not None:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= ranks
    optimizer.step()
    model.scale.mul_(0.8 + 0.1 * (step % 3))


def one_process(seed, ranks, steps):
    """Model and optimizer after these steps."""
    model, optimizer = new_training(seed)
    for step in range(steps):
        take(model, optimizer, seed, step, ranks)
    return model, optimizer


def wrong_step(found, own, received):
    """The words for a wrong next step; ``own`` is what this rank knew."""
    if found == own != BEFORE and not received:
        return (
            "this rank were not behind, for it received nothing: each rank in `behind` "
            "needs the state of the source"
        )
    if found == own != BEFORE:
        return "it were the step that this rank knew: return the source's"
    if found == BEFORE + 1:
        return "the step were counted once more: what the source knows is the next one"
    return ""


def state_of(optimizer):
    """What it keeps, by the number of the parameter and a name."""
    return {
        (number, name): torch.as_tensor(value, dtype=torch.float64).clone()
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def same_optimizer(found, old, newest, rank):
    """That of a rank which has just caught up keeps what the source's keeps."""
    who = f"the optimizer of rank {rank}, which has just caught up"
    expect.that(
        found,
        "this rank has just caught up, and its optimizer has no state: load the "
        "state of the source's optimizer, too",
    )
    expect.equal(sorted(found), sorted(newest), f"what is kept by {who}")
    for (number, name), value in newest.items():
        mistaken = {OLD: old[number, name]} if old else {}
        what = f"{name} of parameter {number} in {who}"
        expect.close(found[number, name], value, what, mistaken=mistaken)


def compare(exercise, ledger, rank, ranks, seed, source, new=(), silent=()):
    """``new`` ranks know nothing; ``silent`` ones missed all but the first step."""
    model, optimizer = kept = new_training(seed)
    for step in range(BEFORE):
        take(model, optimizer, seed, step, ranks, rank)
        if step == 0 and rank in silent:
            old = copy.deepcopy(kept)  # the optimizer's parameters are the model's
    step = BEFORE
    if rank in new:
        (model, optimizer), step = new_training(seed + 1), 0
    if rank in silent:
        (model, optimizer), step = old, 1
    if rank == source:
        time.sleep(0.05)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kept_before = state_of(optimizer)
    behind = sorted([*new, *silent])
    ledger.clear()
    found = exercise.catch_up(model, optimizer, step, source, behind)
    if rank != source and rank not in behind:
        calls = ", ".join(sorted({row.op for row in ledger.rows}))
        expect.right_way(
            not calls,
            f"rank {rank} is neither behind nor the source, but it calls {calls}: "
            "it should send and receive nothing",
        )
    cause = wrong_step(found, step, ledger.rows)
    expect.equal(found, BEFORE, f"the next step on rank {rank}", cause=cause)
    if rank in behind:
        newest, its_optimizer = one_process(seed, ranks, BEFORE)
        for name, value in model.state_dict().items():
            what = f"{name} on rank {rank}, which has just caught up"
            mistaken = {OLD: before[name]}
            expect.close(value, newest.state_dict()[name], what, mistaken=mistaken)
        found_state = state_of(optimizer)
        same_optimizer(found_state, kept_before, state_of(its_optimizer), rank)
    for name, value in before.items():
        if rank not in behind:
            expect.close(model.state_dict()[name], value, f"{name} of a healthy rank")
    for step in range(found, BEFORE + AFTER):
        take(model, optimizer, seed, step, ranks, rank)
    right = one_process(seed, ranks, BEFORE + AFTER)[0].state_dict()
    for name, value in model.state_dict().items():
        what = f"{name} on rank {rank}, {AFTER} steps after it has caught up"
        if rank not in behind:
            what = f"{name} on rank {rank}, which was never lost, {AFTER} steps later"
        expect.close(value, right[name], what)


@pytest.mark.ranks(3, 4)
def test_last_rank_is_new(exercise, ledger, rank, world_size, seed):
    """The last rank was started again, and takes the state of rank 0."""
    compare(exercise, ledger, rank, world_size, seed, 0, new=[world_size - 1])


@pytest.mark.ranks(3, 4)
def test_rank_0_is_new(exercise, ledger, rank, world_size, seed):
    """Rank 0 was started again: the source is rank 1."""
    compare(exercise, ledger, rank, world_size, seed, 1, new=[0])


@pytest.mark.ranks(3, 4)
def test_two_are_behind(exercise, ledger, rank, world_size, seed):
    """Rank 0 is new, rank 1 has an old state: both take that of rank 2."""
    compare(exercise, ledger, rank, world_size, seed, 2, new=[0], silent=[1])


@pytest.mark.ranks(3, 4)
def test_none_is_behind(exercise, ledger, rank, world_size, seed):
    """No rank is behind: all continue as they are."""
    compare(exercise, ledger, rank, world_size, seed, 0)
