"""Checks of exercises/14_parallel_mlp.py."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grader import expect

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02),
}
PARTS = {"up_weight": 0, "up_bias": 0, "down_weight": 1, "down_bias": None}


def drawn(seed, *shape):
    """The same numbers on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


class MLP(nn.Module):
    """What one process computes: 6 numbers in, 11 hidden ones, 5 out."""

    def __init__(self, seed):
        super().__init__()
        self.up, self.down = nn.Linear(6, 11).double(), nn.Linear(11, 5).double()
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


def cut(exercise, seed):
    whole = MLP(seed)
    return exercise.ParallelMLP(whole.up, whole.down)


@pytest.mark.ranks(3, 4)
def test_holds_its_parts(exercise, rank, world_size, seed):
    """Of 11 hidden numbers each rank has the parameters of its own; down_bias whole."""
    whole, mine = MLP(seed), cut(exercise, seed)
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


@pytest.mark.ranks(3, 4)
def test_output_is_that_of_the_whole_mlp(exercise, rank, world_size, seed):
    """The same on all ranks, with biases that are not zero."""
    x = drawn(seed + 9, 4, 3, 6)
    mine, whole = cut(exercise, seed)(x), MLP(seed)(x).detach()
    bias = MLP(seed).down.bias.detach()
    expect.close(
        mine,
        whole,
        "the output",
        mistaken={
            f"off by {world_size - 1} times down_bias": whole + (world_size - 1) * bias,
            "the output without down_bias": whole - bias,
        },
    )


@pytest.mark.ranks(3, 4)
def test_gradients_are_those_of_the_whole_mlp(exercise, rank, world_size, seed):
    """Of the four parameters, and of the input."""
    whole, mine = MLP(seed), cut(exercise, seed)
    theirs = drawn(seed + 9, 4, 3, 6).requires_grad_()
    ours = theirs.detach().clone().requires_grad_()
    weights = drawn(seed + 10, 4, 3, 5)
    (mine(ours) * weights).sum().backward()
    (whole(theirs) * weights).sum().backward()
    for name in reversed(PARTS):
        found = getattr(mine, name).grad
        expect.that(found is not None, f"{name} got no gradient")
        expected = whole.part(name, rank, world_size, grad=True)
        expect.close(found, expected, f"the gradient of {name}")
    twice = f"{world_size} times too big: added up, though it was whole (T04)"
    mistaken = {twice: world_size * theirs.grad}
    what = "the gradient of the input x"
    expect.close(ours.grad, theirs.grad, what, mistaken=mistaken)


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
