"""Checks of exercises/14_column_linear.py."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grader import expect


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
        expect.that(is_parameter, f"{name} is no nn.Parameter: nothing would train it")


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
        expect.close(getattr(layer, name).grad, grad, f"the gradient of {name}")
    partial = own(weights, -1, rank, world_size) @ own(
        whole.weight.detach(), 0, rank, world_size
    )
    expect.close(
        ours.grad,
        theirs.grad,
        "the gradient of the input x",
        mistaken={
            "what the columns of this rank alone give, never added up (T01)": partial
        },
    )


@pytest.mark.ranks(3)
def test_leaves_the_gradient_that_it_is_given(exercise, rank, world_size, seed):
    """A gradient that another part of the graph needs, too, is not overwritten."""
    x, other = (drawn(seed + k, 4, 5).requires_grad_() for k in (0, 1))
    doubled = 2 * other
    both = exercise.CopyToRanks.apply(x) + doubled
    weights = (rank + 1) * drawn(seed + 2, 4, 5)
    (both * weights).sum().backward()
    total = sum(range(1, world_size + 1)) * drawn(seed + 2, 4, 5)
    expect.close(x.grad, total, "the gradient of x", local=weights)
    expect.close(other.grad, 2 * weights, "the gradient of what was added to f(x)")


@pytest.mark.ranks(3)
def test_stride_zero_gradient(exercise, rank, world_size, seed):
    """The gradient of sum() is one number in memory: it can be added up as well."""
    x = drawn(seed, 50, 40).requires_grad_()
    exercise.CopyToRanks.apply(x).sum().backward()
    expected = torch.full_like(x, float(world_size))
    expect.close(x.grad, expected, "the gradient of f(x).sum()")


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
    expect.right_way(not forward, f"forward called {', '.join(forward)}: needs nothing")
    expect.right_way(
        backward == ["all_reduce"],
        f"backward called {', '.join(backward) or 'nothing'}: one all_reduce is enough",
    )
