"""Checks of exercises/14_row_linear.py."""

import time

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()


def drawn(seed, *shape):
    """The same numbers on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def whole_layer(seed, inputs=10, outputs=7):
    """Not square, its bias not zero."""
    layer = nn.Linear(inputs, outputs).double()
    with torch.no_grad():
        layer.weight.copy_(drawn(seed + 1, outputs, inputs))
        layer.bias.copy_(drawn(seed + 2, outputs))
    return layer


def misplaced(whole, x, rank, world_size):
    """What comes out if g is missing in the layer, or at a wrong place, by its name."""
    g = "SumOverRanks.apply (g)"
    shares = [
        F.linear(part, weight)
        for part, weight in zip(
            x.chunk(world_size, -1), whole.weight.chunk(world_size, 1), strict=True
        )
    ]
    output, bias, mine = whole(x), whole.bias, shares[rank]
    found = {
        f"this rank's share: {g} is missing": mine + bias,
        f"this rank's share, and {world_size} times the bias": mine + world_size * bias,
        f"off by {world_size - 1} times the bias: each rank adds it to its share": (
            output + (world_size - 1) * bias
        ),
        f"off by {world_size} times the bias: each rank adds it to its share and again "
        "to the sum": output + world_size * bias,
        "the output without its bias": output - bias,
        f"the sum with 1/{world_size} of the bias": output - bias + bias / world_size,
        f"added up again: {g} twice": world_size * (output - bias) + bias,
    }
    if x.shape[-1] % world_size == 0:
        inputs = sum(x.chunk(world_size, -1))
        weight = whole.weight.chunk(world_size, 1)[rank]
        at = f"{g} belongs after the product with the weight"
        found[f"computed from sums of the inputs: {at}"] = F.linear(
            inputs, weight, bias
        )
        weights = sum(whole.weight.chunk(world_size, 1))
        mine = x.chunk(world_size, -1)[rank]
        found[f"computed with sums of the weights: {at}"] = F.linear(
            mine, weights, bias
        )
    return {name: value.detach() for name, value in found.items()}


def own(tensor, dim, rank, world_size):
    return tensor.chunk(world_size, dim)[rank]


@pytest.mark.ranks(3, 4)
def test_shares_are_added_up(exercise, rank, world_size, seed):
    """SumOverRanks gives the sum of all shares and doesn't change this rank's."""
    shares = drawn(seed, world_size, 4, 5)
    mine = shares[rank].clone()
    if rank == 1:
        time.sleep(0.1)
    total = exercise.SumOverRanks.apply(mine)
    mean = {"the mean of the shares, where their sum is wanted": shares.mean(0)}
    what = "the sum of the shares"
    expect.close(total, shares.sum(0), what, local=shares[rank], mistaken=mean)
    expect.unchanged(mine, shares[rank], "the share of this rank, afterwards")


@pytest.mark.ranks(3, 4)
def test_output_is_that_of_the_whole_layer(exercise, rank, world_size, seed):
    """From 12 inputs, and from 10, which don't divide evenly; the bias isn't 0."""
    for inputs in (12, 10):
        whole = whole_layer(seed, inputs)
        layer = exercise.RowLinear(whole)
        x = drawn(seed, 4, 3, inputs)
        mine = own(x, -1, rank, world_size)
        names = misplaced(whole, x, rank, world_size)
        right = whole(x).detach()
        expect.close(layer(mine), right, "the output", mistaken=names)
        with torch.no_grad():
            found = layer.eval()(mine)
        expect.close(found, right, "the output in evaluation", mistaken=names)


@pytest.mark.ranks(3, 4)
def test_gradients_are_those_of_the_whole_layer(exercise, rank, world_size, seed):
    """Gradients of weight, bias and input; all ranks compute the same loss."""
    whole = whole_layer(seed)
    layer = exercise.RowLinear(whole)
    theirs = drawn(seed, 4, 3, 10).requires_grad_()
    ours = own(theirs.detach(), -1, rank, world_size).clone().requires_grad_()
    layer(ours).square().sum().backward()
    whole(theirs).square().sum().backward()
    for what, found, grad in (
        ("bias", layer.bias, whole.bias.grad),
        ("weight", layer.weight, own(whole.weight.grad, 1, rank, world_size)),
        ("the own inputs", ours, own(theirs.grad, -1, rank, world_size)),
    ):
        mistaken = {
            f"{world_size} times too big: summed over ranks that all had the whole": (
                world_size * grad
            ),
            f"1/{world_size} of it: divided, though every rank needs all of it": (
                grad / world_size
            ),
            "zero: the output of this rank does not depend on it": 0 * grad,
        }
        why = "backward of g returned None, or autograd does not know how you got y"
        if what == "bias":
            why = "the output of this rank does not depend on it"
        expect.gradient(found, grad, what, mistaken=mistaken, why=why)


@pytest.mark.ranks(4)
def test_sends_in_forward_only(exercise, rank, world_size, seed, ledger):
    """One all_reduce in forward, and nothing in backward."""
    layer = exercise.RowLinear(whole_layer(seed))
    x = own(drawn(seed, 4, 3, 10), -1, rank, world_size).clone().requires_grad_()
    ledger.clear()
    y = layer(x)
    forward = ledger.ops()
    ledger.clear()
    y.square().sum().backward()
    backward = ledger.ops()
    expect.right_way(
        forward == ["all_reduce"],
        f"forward called {', '.join(forward) or 'nothing'}: one all_reduce is enough",
    )
    told = f"backward called {', '.join(backward)}: it needs no communication"
    expect.right_way(not backward, told)


@pytest.mark.ranks(3)
def test_layer_in_float32(exercise, rank, world_size, seed):
    """A layer in float32, as most are, gives outputs in float32."""
    whole, x = whole_layer(seed).float(), drawn(seed, 4, 3, 10).float()
    y = exercise.RowLinear(whole)(own(x, -1, rank, world_size))
    right = whole(x).detach()
    expect.close(y, right, "the output in float32", atol=1e-4, rtol=1e-4)
