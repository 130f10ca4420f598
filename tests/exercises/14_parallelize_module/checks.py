"""Checks of exercises/14_parallelize_module.py."""

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import DTensor

from workshop.grader import expect

expect.nothing_is_averaged()

WIDTH, HIDDEN, PIECES, PLACES = 6, 24, 2, 12  # 3 and 4 ranks divide the last and HIDDEN
CUT = {  # the tensor dim along which a parameter is cut, None: whole on every rank
    "norm.weight": None,
    "norm.bias": None,
    "mlp.gate.weight": 0,
    "mlp.gate.bias": 0,
    "mlp.up.weight": 0,
    "mlp.up.bias": 0,
    "mlp.down.weight": 1,
    "mlp.down.bias": None,
}


def drawn(seed, *shape):
    """The same numbers on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


class Whole(nn.Module):
    """What one process computes."""

    def __init__(self, seed):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(WIDTH), nn.Module()
        self.mlp.gate, self.mlp.up = nn.Linear(WIDTH, HIDDEN), nn.Linear(WIDTH, HIDDEN)
        self.mlp.down = nn.Linear(HIDDEN, WIDTH)
        self.double()
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                parameter.copy_(drawn(seed + number, *parameter.shape) / 2)

    def forward(self, x):
        entered, mlp = self.norm(x), self.mlp
        return x + mlp.down(F.silu(mlp.gate(entered)) * mlp.up(entered))


def cut_block(exercise, whole):
    """The learner's block with the numbers of ``whole``, after ``parallelize``."""
    block = exercise.Block(WIDTH, HIDDEN).double()
    block.load_state_dict(whole.state_dict())
    exercise.parallelize(block)
    for layer in (block.mlp.gate, block.mlp.up):
        layer.register_forward_pre_hook(check_input_is_whole)
    block.mlp.register_forward_hook(check_output_is_a_slice)
    return block


def check_input_is_whole(layer, args):
    """Before the output is asked for, which may be wrong because of it."""
    found, expected = list(args[0].shape), [PIECES, PLACES, WIDTH]
    expect.that(
        found == expected,
        f"gate and up compute on {found}, expected all positions, {expected}: their "
        "input_layouts, or those of mlp, say along which tensor dim the slice is cut",
    )


def check_output_is_a_slice(mlp, args, output):
    """Else the sum with the slice raises an error that doesn't name the plan."""
    found = list(local(output).shape)
    expected = [PIECES, PLACES // dist.get_world_size(), WIDTH]
    expect.that(
        found == expected,
        f"mlp returns {found}, expected the slice {expected}: output_layouts of down "
        "says along which tensor dim its output is cut",
    )


def slices(x, world_size):
    return [part.detach().clone() for part in x.chunk(world_size, dim=1)]


def part_of(whole, name, rank, world_size):
    """What a rank should have of a parameter."""
    value, dim = whole.get_parameter(name).detach(), CUT[name]
    return value if dim is None else value.chunk(world_size, dim)[rank]


def local(value):
    return value.detach().to_local() if isinstance(value, DTensor) else value.detach()


def outputs_by_mistake(whole, x, rank, world_size):
    """The output of a rank if what the MLP computes is sent elsewhere or not added."""
    with torch.no_grad():
        entered, mlp = whole.norm(x), whole.mlp
        hidden = F.silu(mlp.gate(entered)) * mlp.up(entered)
        weights = mlp.down.weight.chunk(world_size, 1)
        own = F.linear(hidden.chunk(world_size, -1)[rank], weights[rank])
        mine = x.chunk(world_size, 1)[rank]
        share = own.chunk(world_size, 1)[rank] + mlp.down.bias
    return {"x and only this rank's share of the MLP": mine + share}


@pytest.mark.ranks(3, 4)
def test_each_rank_holds_its_part(exercise, rank, world_size, seed):
    """Columns of gate and up, rows of down; the norm and the bias of down whole."""
    whole = Whole(seed)
    block = cut_block(exercise, whole)
    expect.equal(sorted(dict(block.named_parameters())), sorted(CUT), "the parameters")
    for name, parameter in block.named_parameters():
        expected = part_of(whole, name, rank, world_size)
        found = local(parameter)
        expect.that(
            found.shape == expected.shape,
            f"{name}: this rank holds {list(found.shape)} of it, and its part is "
            f"{list(expected.shape)}",
        )
        expect.that(
            isinstance(parameter, DTensor),
            f"{name} is a plain tensor: the plan has no style for its layer, so "
            "nothing adds up its gradient over the slices",
        )
        expect.close(found, expected, f"this rank's part of {name}")


@pytest.mark.ranks(3, 4)
def test_output_is_the_slice_of_the_whole_block(exercise, rank, world_size, seed):
    """A slice of the positions goes in, the same slice of the output comes out."""
    whole, x = Whole(seed), drawn(seed + 9, PIECES, PLACES, WIDTH)
    y = cut_block(exercise, whole)(slices(x, world_size)[rank])
    expected = slices(whole(x), world_size)[rank]
    names = outputs_by_mistake(whole, x, rank, world_size)
    expect.close(local(y), expected, "the output", mistaken=names)


@pytest.mark.ranks(3, 4)
def test_gradients_are_those_of_the_whole_block(exercise, rank, world_size, seed):
    """whole_gradients gives what one process computes; x gets its gradient, too."""
    whole, x = Whole(seed), drawn(seed + 9, PIECES, PLACES, WIDTH).requires_grad_()
    weights = drawn(seed + 10, PIECES, PLACES, WIDTH)
    (whole(x) * weights).sum().backward()
    block = cut_block(exercise, whole)
    mine = slices(x, world_size)[rank].requires_grad_()
    (block(mine) * slices(weights, world_size)[rank]).sum().backward()
    grads = {name: p.grad for name, p in block.named_parameters()}
    own = {name: local(gradient).clone() for name, gradient in grads.items()}
    found = exercise.whole_gradients(block)
    kind = type(found).__name__
    expect.that(
        isinstance(found, dict), f"whole_gradients returned a {kind}, expected a dict"
    )
    expect.equal(sorted(found), sorted(CUT), "the names of whole_gradients")
    for name, gradient in found.items():
        expect.that(
            gradient is not None,
            f"the gradient of {name} is None: full_tensor() makes a new tensor, whose "
            ".grad was never filled",
        )
        expect.that(
            not isinstance(gradient, DTensor),
            f"the gradient of {name} is a DTensor: a plain tensor was asked for",
        )
        expected = whole.get_parameter(name).grad
        kept = own[name].shape == expected.shape
        told = "this rank's own, from its slice of the positions: not added up"
        of_slice = {told: own[name]} if kept and CUT[name] is None else {}
        whole_name = f"the whole gradient of {name}"
        expect.close(gradient, expected, whole_name, mistaken=of_slice)
    expected = slices(x.grad, world_size)[rank]
    expect.gradient(mine, expected, "the slice of the input x")
    for name, parameter in block.named_parameters():
        what = f"{name}.grad after whole_gradients"
        expect.that(parameter.grad is grads[name], f"{what} was replaced: keep it")
        expect.unchanged(local(parameter.grad), own[name], what)


@pytest.mark.ranks(4)
def test_one_all_gather_one_reduce_scatter(exercise, rank, world_size, seed, ledger):
    """Forward and backward send no more than one of each."""
    whole, x = Whole(seed), drawn(seed + 9, PIECES, PLACES, WIDTH)
    block = cut_block(exercise, whole)
    mine = slices(x, world_size)[rank].requires_grad_()
    seen = []
    block.mlp.gate.register_forward_pre_hook(
        lambda _, args: seen.append(list(args[0].shape))
    )
    ledger.clear()
    y = block(mine)
    forward = ledger.ops()
    ledger.clear()
    local_sum = y.square().sum()
    local_sum.backward()
    for way, ops in (("forward", forward), ("backward", ledger.ops())):
        kinds = [op.removesuffix("_tensor").removesuffix("_into") for op in ops]
        expect.right_way(
            kinds == ["all_gather", "reduce_scatter"],
            f"{way} called {', '.join(kinds) or 'nothing'}: one all_gather before "
            "the MLP and one reduce_scatter after it are enough",
        )
    expect.right_way(
        seen == [list(x.shape)],
        f"the MLP computes on {seen}, expected {list(x.shape)}: the slices are "
        "gathered along another tensor dim than that of the positions",
    )
