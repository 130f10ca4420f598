"""Checks of exercises/14_row_linear.py."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grader import expect


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


def own(tensor, dim, rank, world_size):
    return tensor.chunk(world_size, dim)[rank]


@pytest.mark.ranks(3, 4)
def test_shares_are_added_up(exercise, rank, world_size, seed):
    """SumOverRanks gives the sum of all shares, and leaves this rank's as it was."""
    shares = drawn(seed, world_size, 4, 5)
    mine = shares[rank].clone()
    total = exercise.SumOverRanks.apply(mine)
    expect.close(total, shares.sum(0), "the sum of the shares", local=shares[rank])
    expect.close(mine, shares[rank], "the share of this rank, afterwards")


@pytest.mark.ranks(3, 4)
def test_output_is_that_of_the_whole_layer(exercise, rank, world_size, seed):
    """From 10 inputs, which the ranks do not divide, with a bias that is not zero."""
    whole = whole_layer(seed)
    layer = exercise.RowLinear(whole)
    x = drawn(seed, 4, 3, 10)
    mine = own(x, -1, rank, world_size)
    expected = whole(x).detach()
    expect.close(
        layer(mine),
        expected,
        "the output",
        local=F.linear(mine, layer.weight) + layer.bias,
        mistaken={
            f"off by {world_size - 1} times the bias: each rank adds it to its share": (
                expected + (world_size - 1) * whole.bias
            ),
            "the output without its bias": expected - whole.bias,
        },
    )


@pytest.mark.ranks(3, 4)
def test_gradients_are_those_of_the_whole_layer(exercise, rank, world_size, seed):
    """Of weight, bias and input; all ranks compute the same loss from the output."""
    whole = whole_layer(seed)
    layer = exercise.RowLinear(whole)
    theirs = drawn(seed, 4, 3, 10).requires_grad_()
    ours = own(theirs.detach(), -1, rank, world_size).clone().requires_grad_()
    layer(ours).square().sum().backward()
    whole(theirs).square().sum().backward()
    expect.close(layer.bias.grad, whole.bias.grad, "the gradient of bias")
    for what, found, grad in (
        ("weight", layer.weight.grad, own(whole.weight.grad, 1, rank, world_size)),
        ("the own inputs", ours.grad, own(theirs.grad, -1, rank, world_size)),
    ):
        twice = f"{world_size} times too big: added up, though it was whole (T04)"
        mistaken = {twice: world_size * grad}
        expect.close(found, grad, f"the gradient of {what}", mistaken=mistaken)


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
    expect.right_way(
        not backward, f"backward called {', '.join(backward)}: it needs nothing"
    )
