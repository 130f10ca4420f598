"""Checks of exercises/14_column_linear.py."""

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


def whole_layer(seed, inputs=7, outputs=10):
    """Not square, its bias not zero."""
    layer = nn.Linear(inputs, outputs).double()
    with torch.no_grad():
        layer.weight.copy_(drawn(seed + 1, outputs, inputs))
        layer.bias.copy_(drawn(seed + 2, outputs))
    return layer


def own(tensor, dim, rank, world_size):
    return tensor.chunk(world_size, dim)[rank]


@pytest.mark.ranks(3, 4)
def test_holds_its_columns(exercise, rank, world_size, seed):
    """weight and bias are this rank's part of 10 outputs, as torch.chunk divides."""
    whole = whole_layer(seed)
    layer = exercise.ColumnLinear(whole)
    names = sorted(name for name, _ in layer.named_parameters())
    for name in ("weight", "bias"):
        has = f"; it has {' and '.join(names)}" if names else ""
        expect.that(hasattr(layer, name), f"the layer has no self.{name}{has}")
    others = [name for name in names if name not in ("weight", "bias")]
    expect.that(not others, f"the layer also holds {others}: its part is enough")
    for name in ("weight", "bias"):
        found = getattr(layer, name)
        total = getattr(whole, name).detach()
        expected = own(total, 0, rank, world_size)
        expect.that(torch.is_tensor(found), f"{name} is no tensor")
        expect.that(
            found.shape == expected.shape,
            f"{name} has shape {list(found.shape)}; the part of this rank is "
            f"{list(expected.shape)} of {list(total.shape)}",
        )
        expect.close(found, expected, name)
        is_parameter = isinstance(found, nn.Parameter)
        expect.that(
            is_parameter,
            f"{name} isn't an nn.Parameter, so no optimizer would train it",
        )
        expect.that(found.requires_grad, f"{name} is frozen: it would not be trained")
        expect.own_memory(found, getattr(whole, name), name)
    still = all(parameter.requires_grad for parameter in whole.parameters())
    expect.that(still, "the whole layer's parameters no longer require gradients")


@pytest.mark.ranks(3, 4)
def test_outputs_and_gradients_are_those_of_the_whole(exercise, rank, world_size, seed):
    """Outputs, and the gradients of weight, bias and input."""
    whole = whole_layer(seed)
    layer = exercise.ColumnLinear(whole)
    ours = drawn(seed, 4, 3, 7).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    y, expected = layer(ours), whole(theirs)
    expect.close(y, own(expected, -1, rank, world_size), "the outputs of this rank")
    weights = drawn(seed + 3, 4, 3, 10)
    (y * own(weights, -1, rank, world_size)).sum().backward()
    (expected * weights).sum().backward()
    for name in ("weight", "bias"):
        grad = own(getattr(whole, name).grad, 0, rank, world_size)
        expect.gradient(getattr(layer, name), grad, name)
    partial = own(weights, -1, rank, world_size) @ own(
        whole.weight.detach(), 0, rank, world_size
    )
    expect.gradient(
        ours,
        theirs.grad,
        "the input x",
        why="backward of f returned None, as all_reduce does",
        mistaken={
            "what the columns of this rank alone give, never added up": partial,
            "the mean over the ranks, where their sum is wanted": (
                theirs.grad / world_size
            ),
            f"added up again, so that it is {world_size} times too big": (
                world_size * theirs.grad
            ),
            "the sum, with this rank's own part in it once more": (
                theirs.grad + partial
            ),
        },
    )


@pytest.mark.ranks(3)
def test_leaves_the_gradient_that_it_is_given(exercise, rank, world_size, seed):
    """A gradient that another part of the graph also needs isn't overwritten."""
    x, other = (drawn(seed + k, 4, 5).requires_grad_() for k in (0, 1))
    doubled = 2 * other
    both = exercise.CopyToRanks.apply(x) + doubled
    weights = (rank + 1) * drawn(seed + 2, 4, 5)
    loss = (both * weights).sum()
    if rank == 1:
        time.sleep(0.1)
    loss.backward()
    total = sum(range(1, world_size + 1)) * drawn(seed + 2, 4, 5)
    expect.gradient(x, total, "x", local=weights)
    overwritten = {
        "overwritten by that of x: backward of f changed the tensor that autograd gave "
        "it; sum a copy": 2 * total
    }
    what = "what was added to f(x)"
    expect.gradient(other, 2 * weights, what, mistaken=overwritten)


@pytest.mark.ranks(3)
def test_stride_zero_gradient(exercise, rank, world_size, seed):
    """A gradient from sum(), one number in memory, is added up as well."""
    x = drawn(seed, 50, 40).requires_grad_()
    exercise.CopyToRanks.apply(x).sum().backward()
    expected = torch.full_like(x, float(world_size))
    expect.gradient(x, expected, "x in f(x).sum()")


@pytest.mark.ranks(4)
def test_sends_in_backward_only(exercise, rank, world_size, seed, ledger):
    """Nothing in forward, and one all_reduce in backward."""
    whole = whole_layer(seed)
    layer = exercise.ColumnLinear(whole)
    x = drawn(seed, 4, 3, 7).requires_grad_()
    ledger.clear()
    y = layer(x)
    forward = ledger.ops()
    ledger.clear()
    F.gelu(y).sum().backward()
    backward = ledger.ops()
    told = f"forward called {', '.join(forward)}: it needs no communication"
    expect.right_way(not forward, told)
    expect.right_way(
        backward == ["all_reduce"],
        f"backward called {', '.join(backward) or 'nothing'}: one all_reduce is enough",
    )
