"""Checks of exercises/14_parallel_mlp.py."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grader import expect

expect.nothing_is_averaged()

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02),
}
UNKNOWN = "autograd knows a sum over the ranks only if f or g made it"
PARTS = {"up_weight": 0, "up_bias": 0, "down_weight": 1, "down_bias": None}


def drawn(seed, *shape):
    """The same numbers on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


class MLP(nn.Module):
    """What one process computes: 6 numbers in, some hidden ones, 5 out."""

    def __init__(self, seed, hidden=11):
        super().__init__()
        self.up = nn.Linear(6, hidden).double()
        self.down = nn.Linear(hidden, 5).double()
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                parameter.copy_(drawn(seed + number, *parameter.shape) / 2)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))

    def part(self, name, rank, world_size, grad=False):
        """What a rank should have of a parameter, or of its gradient."""
        layer, _, which = name.partition("_")
        whole = getattr(getattr(self, layer), which)
        whole = whole.grad if grad else whole.detach()
        dim = PARTS[name]
        return whole if dim is None else whole.chunk(world_size, dim)[rank]


def cut(exercise, seed, hidden=11):
    whole = MLP(seed, hidden)
    return exercise.ParallelMLP(whole.up, whole.down)


def misplaced(whole, x, rank, world_size):
    """The output if g is missing or at a wrong place, by the name of the mistake."""
    g = "SumOverRanks.apply (g)"
    ups, biases = whole.up.weight.chunk(world_size), whole.up.bias.chunk(world_size)
    downs, bias = whole.down.weight.chunk(world_size, 1), whole.down.bias
    before = [F.linear(x, *part) for part in zip(ups, biases, strict=True)]
    shares = [F.linear(F.gelu(h), d) for h, d in zip(before, downs, strict=True)]
    total, mine = sum(shares), shares[rank]
    from_sum = F.gelu(F.linear(world_size * x, ups[rank], biases[rank]))
    found = {
        f"off by {world_size - 1} times down_bias": total + world_size * bias,
        "the output without down_bias": total,
        f"this rank's share: {g} is missing": mine + bias,
        f"added up again: {g} twice": world_size * total + bias,
        f"computed from {world_size} times the input: {g} belongs after down": (
            F.linear(from_sum, downs[rank], bias)
        ),
        "the output without gelu": whole.down(whole.up(x)),
        "the output without up_bias": whole.down(F.gelu(F.linear(x, whole.up.weight))),
        "gelu of the sum: gelu belongs between up and down": (
            F.gelu(sum(F.linear(h, d) for h, d in zip(before, downs, strict=True)))
            + bias
        ),
    }
    if len(biases[0]) == len(biases[-1]):
        for name, parts in (
            ("the hidden numbers", sum(map(F.gelu, before))),
            ("the hidden numbers before gelu", F.gelu(sum(before))),
        ):
            mixed = F.linear(parts, downs[rank], bias)
            found[f"computed from sums of {name}: {g} belongs after down"] = mixed
    return {name: value.detach() for name, value in found.items()}


def scaled(grad, world_size):
    """Names of gradients that are a multiple of the right one."""
    twice = "added up, though it was whole: f (CopyToRanks.apply) goes before up"
    return {
        f"{world_size} times too big: {twice}": world_size * grad,
        "zero: the output of this rank does not depend on it": 0 * grad,
    }


def without_f(whole, x, weights, rank, world_size):
    """The gradients if f is missing or at a wrong place: name -> {mistake: value}."""
    f = "CopyToRanks.apply (f)"
    ups, downs = whole.up.weight.detach(), whole.down.weight.detach()
    before = F.linear(x.detach(), ups, whole.up.bias.detach()).requires_grad_()
    (of_hidden,) = torch.autograd.grad(F.gelu(before).sum(), before)
    at_hidden = (weights @ downs).chunk(world_size, -1)  # gradients after gelu
    slopes, ups = of_hidden.chunk(world_size, -1), ups.chunk(world_size)
    alone = at_hidden[rank] * slopes[rank]
    x_alone = {f"this rank's own part: {f} is missing": alone @ ups[rank]}
    names = {"down_weight": {}, "down_bias": {}, "up_weight": {}, "up_bias": {}}
    if len({part.shape for part in at_hidden}) == 1:
        places = {
            "gelu": sum(at_hidden) * slopes[rank],
            "up": sum(a * s for a, s in zip(at_hidden, slopes, strict=True)),
        }
        for place, grad in places.items():
            told = f"added up over other hidden numbers: {f} comes after {place}"
            names["up_weight"][told] = grad.flatten(0, 1).T @ x.detach().flatten(0, 1)
            names["up_bias"][told] = grad.flatten(0, 1).sum(0)
            x_alone[told] = grad @ ups[rank]
    return names | {"x": x_alone}


@pytest.mark.ranks(3, 4)
def test_holds_its_parts(exercise, rank, world_size, seed):
    """Each rank has its part of 11 hidden numbers, and down_bias whole."""
    whole = MLP(seed)
    mine = exercise.ParallelMLP(whole.up, whole.down)
    others = [name for name, _ in mine.named_parameters() if name not in PARTS]
    expect.that(not others, f"the MLP also holds {others}: its parts are enough")
    for name in PARTS:
        found = getattr(mine, name, None)
        expect.that(torch.is_tensor(found), f"the MLP has no {name}")
        expected = whole.part(name, rank, world_size)
        expect.that(
            found.shape == expected.shape,
            f"{name} has shape {list(found.shape)}; what this rank should have of it "
            f"is {list(expected.shape)}",
        )
        expect.close(found, expected, name)
        is_parameter = isinstance(found, nn.Parameter)
        expect.that(is_parameter, f"{name} is no nn.Parameter: nothing would train it")
        layer, _, which = name.partition("_")
        expect.own_memory(found, getattr(getattr(whole, layer), which), name)


@pytest.mark.ranks(3, 4)
def test_output_is_that_of_the_whole_mlp(exercise, rank, world_size, seed):
    """The output is the same on all ranks; no bias is zero; 12 or 11 hidden numbers."""
    x = drawn(seed + 9, 4, 3, 6)
    for hidden in (12, 11):
        whole = MLP(seed, hidden)
        found = cut(exercise, seed, hidden)(x)
        names = misplaced(whole, x, rank, world_size)
        expect.close(found, whole(x).detach(), "the output", mistaken=names)


@pytest.mark.ranks(3, 4)
def test_gradients_are_those_of_the_whole_mlp(exercise, rank, world_size, seed):
    """Gradients of the four parameters and of the input."""
    for hidden in (12, 11):
        whole, mine = MLP(seed, hidden), cut(exercise, seed, hidden)
        theirs = drawn(seed + 9, 4, 3, 6).requires_grad_()
        ours = theirs.detach().clone().requires_grad_()
        weights = drawn(seed + 10, 4, 3, 5)
        (mine(ours) * weights).sum().backward()
        (whole(theirs) * weights).sum().backward()
        names = without_f(whole, theirs, weights, rank, world_size)
        for name in reversed(PARTS):
            expected = whole.part(name, rank, world_size, grad=True)
            found = names[name] | scaled(expected, world_size)
            parameter = getattr(mine, name)
            expect.gradient(parameter, expected, name, mistaken=found, why=UNKNOWN)
        found = names["x"] | scaled(theirs.grad, world_size)
        expect.gradient(ours, theirs.grad, "the input x", mistaken=found, why=UNKNOWN)


@pytest.mark.ranks(3, 4)
def test_one_all_reduce_in_each_direction(exercise, rank, world_size, seed, ledger):
    """Forward and backward call all_reduce once each, and nothing else."""
    mine = cut(exercise, seed)
    x = drawn(seed + 9, 4, 3, 6).requires_grad_()
    ledger.clear()
    y = mine(x)
    forward = ledger.ops()
    ledger.clear()
    y.square().sum().backward()
    for way, ops in (("forward", forward), ("backward", ledger.ops())):
        expect.right_way(
            ops == ["all_reduce"],
            f"{way} called {', '.join(ops) or 'nothing'}: one all_reduce is enough",
        )


@pytest.mark.ranks(3, 4)
def test_trains_like_one_process(exercise, rank, world_size, seed):
    """Three steps of two MLPs in a row give the parameters of one process."""
    for name, make in OPTIMIZERS.items():
        first, second = MLP(seed), MLP(seed + 20)
        narrow = drawn(seed + 30, 5, 6)  # so that one's output fits the next
        pair = [exercise.ParallelMLP(m.up, m.down) for m in (first, second)]
        whole = make([*first.parameters(), *second.parameters()])
        mine = make([p for m in pair for p in m.parameters()])
        for step in range(3):
            x = drawn(seed + 40 + step, 8, 6)
            for optimizer, (one, two) in ((whole, (first, second)), (mine, pair)):
                optimizer.zero_grad()
                two(one(x) @ narrow).square().mean().backward()
                optimizer.step()
        for number, (model, cut_one) in enumerate(
            zip((first, second), pair, strict=True)
        ):
            for key in PARTS:
                expected = model.part(key, rank, world_size)
                what = f"{key} of MLP {number} after 3 steps, {name}"
                expect.close(getattr(cut_one, key), expected, what)
