"""Checks of exercises/23_who_averages.py: against all copies in one process."""

import copy
import time

import pytest
import torch
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()


class Model(nn.Module):
    """Statistics, a counter, a mask, a frozen layer and a tied one."""

    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(4, 4)
        self.frozen.requires_grad_(False)
        self.norm = nn.BatchNorm1d(4)
        self.layer = nn.Linear(4, 4, bias=False)
        self.tied = nn.Linear(4, 4, bias=False)
        self.tied.weight = self.layer.weight
        self.register_buffer("mask", torch.tensor([True, False, True, True]))
        self.register_buffer("center", torch.zeros(4), persistent=False)

    def forward(self, x):
        x = self.norm(self.frozen(x) - self.center)
        self.center.lerp_(x.detach().mean(dim=0) + x.detach()[0], 0.25)
        return self.tied(torch.tanh(self.layer(x))) * self.mask


def trained(seed, rank, steps=3):
    """Rank ``rank``'s copy after its local steps, and its optimizer."""
    torch.manual_seed(seed)
    model = Model().double()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, 0.05)
    for step in range(steps + (0, 2, 1, 3)[rank]):  # counters differ, too
        step_of(model, optimizer, seed, rank, step)
    return model, optimizer


def step_of(model, optimizer, seed, rank, step):
    generator = torch.Generator().manual_seed(1000 * seed + 10 * step + rank)
    rows = 6 + 2 * rank
    x = torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    optimizer.zero_grad()
    (model(x) - x.flip(1)).square().mean().backward()
    optimizer.step()


def tensors_of(model):
    """Name -> tensor; a tied parameter has two names. A state dict lacks "center"."""
    return {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers()),
    }


MEAN = ("norm.weight", "norm.bias", "layer.weight", "tied.weight")
TIED = ("layer.weight", "tied.weight")
STATISTICS = ("norm.running_mean", "norm.running_var", "center")
FROZEN = ("frozen.weight", "frozen.bias")
STAY = ("norm.num_batches_tracked", "mask")


@pytest.mark.ranks(3, 4)
def test_average_copies(exercise, rank, world_size, seed):
    """average_copies: trained parameters and statistics; all else stays."""
    if rank == 1:
        time.sleep(0.05)
    every = [tensors_of(trained(seed, r)[0]) for r in range(world_size)]
    model, optimizer = trained(seed, rank)
    before = copy.deepcopy(optimizer.state_dict())
    parameters = dict(model.named_parameters())
    exercise.average_copies(model)
    found = tensors_of(model)
    expect.equal(sorted(found), sorted(every[rank]), "names in the model's state")
    for name, parameter in model.named_parameters():
        expect.that(
            parameters[name] is parameter,
            f"{name} is another parameter now, and the optimizer has lost it: average "
            "it in place",
        )
    expect.that(
        model.tied.weight is model.layer.weight, "the tied parameters aren't one now"
    )
    compare_means(found, every, rank, world_size)
    for name in FROZEN:  # their mean is the same, up to rounding
        expect.close(found[name], every[rank][name], name)
    for name in STAY:
        cause = moved(found[name], [each[name] for each in every])
        expect.equal(found[name], every[rank][name], name, cause=cause)
        expect.equal(found[name].dtype, every[rank][name].dtype, f"dtype of {name}")
    compare_states(optimizer.state_dict(), before, every, seed, world_size)


def compare_means(found, every, rank, world_size, own=""):
    """What is averaged; ``every``: by rank, ``own``: words for an old parameter."""
    for name in MEAN + STATISTICS:
        total = sum(each[name] for each in every)
        right = total / world_size
        undivided = "the sum over the ranks: divide it"
        if name in TIED:
            undivided += ", or it was added up twice: it's tied"
        why = "it's to be averaged"
        if name in MEAN:
            why += own
        elif name == "center":
            why += ", though no state dict has it: it's a buffer with persistent=False"
        names = {
            f"this rank's own: {why}": every[rank][name],
            "rank 0's: all ranks have learned something": every[0][name],
            undivided: total,
            "divided twice: a tied parameter is one parameter": right / world_size,
        }
        expect.close(found[name].detach(), right, name, mistaken=names)


@pytest.mark.ranks(3, 4)
def test_average_without_gradients(exercise, rank, world_size, seed):
    """average_copies after zero_grad(): no parameter has a gradient any more."""
    every = [tensors_of(trained(seed, r)[0]) for r in range(world_size)]
    model, optimizer = trained(seed, rank)
    optimizer.zero_grad()
    exercise.average_copies(model)
    own = ", although its gradient is None: requires_grad says what is trained"
    compare_means(tensors_of(model), every, rank, world_size, own)


def moved(found, every):
    """The words for what became of a buffer that isn't averaged; ``every``: by rank."""
    values = torch.stack([value.double() for value in every])
    mean = values.mean(dim=0)
    wrong = {
        "buffers of whole numbers or bools were averaged: they stay": [
            mean.floor(),
            mean.round(),
            mean,
        ],
        "buffers of whole numbers or bools were added up: they stay": [
            values.sum(dim=0)
        ],
        "buffers of whole numbers or bools were those of rank 0: they stay": [
            values[0]
        ],
    }
    alike = [
        words
        for words, each in wrong.items()
        if any(torch.equal(found.double(), value) for value in each)
    ]
    return ", or as if ".join(alike)


def compare_states(found, before, every, seed, world_size):
    """The inner optimizer's state, which must be this rank's as before."""
    states = [trained(seed, r)[1].state_dict()["state"] for r in range(world_size)]
    expect.equal(sorted(found["state"]), sorted(before["state"]), "optimizer's state")
    for index, state in before["state"].items():
        for key in ("exp_avg", "exp_avg_sq"):
            mean = sum(each[index][key] for each in states) / world_size
            names = {
                "the mean over the ranks: the inner state stays": mean,
                "rank 0's: each rank keeps its own": states[0][index][key],
            }
            own = found["state"][index][key]
            what = f"{key} of parameter {index} in the optimizer"
            expect.close(own, state[key], what, mistaken=names)


@pytest.mark.ranks(3, 4)
def test_training_continues(exercise, rank, world_size, seed):
    """After the average, the inner optimizer still trains the same model."""
    model, optimizer = trained(seed, rank)
    reference, of_reference = trained(seed, rank)
    every = [tensors_of(trained(seed, r)[0]) for r in range(world_size)]
    with torch.no_grad():
        for name, tensor in tensors_of(reference).items():
            if name in MEAN + STATISTICS:
                tensor.copy_(sum(each[name] for each in every) / world_size)
    exercise.average_copies(model)
    step_of(model, optimizer, seed, rank, 50)
    step_of(reference, of_reference, seed, rank, 50)
    for name, right in tensors_of(reference).items():
        what = f"{name} one step later"
        expect.close(tensors_of(model)[name], right, what)


def has_all(found, wanted, what):
    """Expect a dict with at least the keys of ``wanted``."""
    kind = type(found).__name__
    expect.that(isinstance(found, dict), f"{what} is a {kind}: call state_dict()")
    missing = ", ".join(repr(key) for key in wanted if key not in found)
    expect.that(not missing, f"{what} lacks {missing}: state_dict() has all of it")


@pytest.mark.ranks(3, 4)
def test_whole_snapshot(exercise, rank, world_size, seed):
    """whole_snapshot: the state of every rank, on rank 0."""
    if rank == 2:
        time.sleep(0.05)
    model, optimizer = trained(seed, rank)
    found = exercise.whole_snapshot(model, optimizer, 3)
    if rank:
        expect.equal(found, None, "what a rank other than 0 returns")
        return
    expect.that(isinstance(found, dict), f"rank 0 returns {type(found)}, not a dict")
    expect.equal(sorted(found), ["ranks", "steps_run"], "keys of the snapshot")
    expect.equal(found["steps_run"], 3, "steps_run")
    kind = type(found["ranks"]).__name__
    is_list = isinstance(found["ranks"], (list, tuple))
    expect.that(is_list, f'"ranks" in the snapshot is a {kind}, expected a list')
    expect.equal(len(found["ranks"]), world_size, "states in the snapshot")
    copies = [trained(seed, r) for r in range(world_size)]
    for number, state in enumerate(found["ranks"]):
        label = f"of rank {number} in the snapshot"
        expect.that(isinstance(state, dict), f"the state {label} is not a dict")
        expect.equal(sorted(state), ["model", "optimizer"], f"keys {label}")
        own = copies[number][0].state_dict()
        has_all(state["model"], own, f"the model's state {label}")
        of_optimizer = copies[number][1].state_dict()
        has_all(state["optimizer"], of_optimizer, f"the optimizer's state {label}")
        for name, right in own.items():
            mean = sum(tensors_of(one[0])[name].double() for one in copies) / world_size
            names = {
                "rank 0's: between two averages each rank has its own": tensors_of(
                    copies[0][0]
                )[name],
                "the mean over the ranks: it was to be saved, not averaged": mean,
            }
            what = f"{name} {label}"
            if right.is_floating_point():
                expect.close(state["model"][name], right, what, mistaken=names)
            else:
                expect.equal(state["model"][name], right, what)
        moments = state["optimizer"]["state"]
        all_moments = f"the state of the parameters in the optimizer's {label}"
        has_all(moments, of_optimizer["state"], all_moments)
        for index, right in copies[number][1].state_dict()["state"].items():
            names = {
                "rank 0's: each rank has its own moments": copies[0][1].state_dict()[
                    "state"
                ][index]["exp_avg"]
            }
            what = f"exp_avg of parameter {index} {label}"
            has_all(moments[index], right, f"the state of parameter {index} {label}")
            moment = moments[index]["exp_avg"]
            expect.close(moment, right["exp_avg"], what, mistaken=names)
