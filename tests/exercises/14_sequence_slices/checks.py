"""Checks of exercises/14_sequence_slices.py: against the whole sequence."""

import time

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()

BATCH, TOKENS, WIDTH, HIDDEN = 2, 12, 5, 24


def drawn(seed, *shape):
    """The same numbers on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def own(tensor, rank, world_size, dim=1):
    return tensor.chunk(world_size, dim)[rank].clone()


@pytest.mark.ranks(3, 4)
def test_the_gradient_of_gathered_slices(exercise, rank, world_size, seed):
    """GatherSlices: a slice's gradient has a part from every rank."""
    x = drawn(seed, BATCH, TOKENS, WIDTH)
    factors = drawn(seed + 1, world_size, BATCH, TOKENS, WIDTH)
    slice_ = own(x, rank, world_size).requires_grad_()
    if rank == 1:
        time.sleep(0.05)
    found = exercise.GatherSlices.apply(slice_)
    expect.close(found, x, "the gathered slices")
    (found * factors[rank]).sum().backward()
    right = own(factors.sum(0), rank, world_size)
    names = {
        "this rank's part of it: the other ranks' parts are missing": own(
            factors[rank], rank, world_size
        ),
        "the mean of the ranks' parts, where their sum is wanted": right / world_size,
        "the sum over this rank's slices, not over the ranks": sum(
            factors[rank].chunk(world_size, 1)
        ),
    }
    what = "the gradient of this rank's slice (GatherSlices)"
    expect.close(slice_.grad, right, what, mistaken=names)
    given = factors[rank].clone()
    exercise.GatherSlices.apply(slice_).backward(given)
    what = "the gradient that GatherSlices.backward was given, afterwards"
    expect.unchanged(given, factors[rank], what)


@pytest.mark.ranks(3, 4)
def test_the_gradient_of_a_slice_of_the_sum(exercise, rank, world_size, seed):
    """SumToSlices: a share's gradient has the slices of all ranks."""
    shares = drawn(seed, world_size, BATCH, TOKENS, WIDTH)
    factors = drawn(seed + 1, BATCH, TOKENS, WIDTH)
    share = shares[rank].clone().requires_grad_()
    found = exercise.SumToSlices.apply(share)
    expect.close(found, own(shares.sum(0), rank, world_size), "the slice of the sum")
    mine = own(factors, rank, world_size)
    (found * mine).sum().backward()
    alone = torch.zeros_like(factors)
    alone.chunk(world_size, 1)[rank].copy_(mine)
    names = {
        "this rank's slice, and zero elsewhere: the other ranks' slices are missing": (
            alone
        ),
        "this rank's slice, repeated": mine.repeat(1, world_size, 1),
        "divided by the number of ranks": factors / world_size,
    }
    what = "the gradient of this rank's share (SumToSlices)"
    expect.close(share.grad, factors, what, mistaken=names)


def layers(seed):
    """A norm and an MLP in one process, with weights and biases that aren't 0 or 1."""
    norm = nn.LayerNorm(WIDTH).double()
    column = nn.Linear(WIDTH, HIDDEN).double()
    row = nn.Linear(HIDDEN, WIDTH).double()
    with torch.no_grad():
        for number, parameter in enumerate(
            [*norm.parameters(), *column.parameters(), *row.parameters()]
        ):
            parameter.copy_(drawn(seed + 10 + number, *parameter.shape) / 2)
    return norm, column, row


def cut(exercise, seed, rank, world_size):
    """This rank's block."""
    norm, column, row = layers(seed)
    column.weight = nn.Parameter(own(column.weight.data, rank, world_size, 0))
    column.bias = nn.Parameter(own(column.bias.data, rank, world_size, 0))
    row.weight = nn.Parameter(own(row.weight.data, rank, world_size, 1))
    return exercise.Block(norm, column, row)


@pytest.mark.ranks(3, 4)
def test_a_block_is_that_of_one_process(exercise, rank, world_size, seed):
    """Outputs and, after sum_gradients, all gradients are those of one process."""
    x = drawn(seed, BATCH, TOKENS, WIDTH)
    factors = drawn(seed + 1, BATCH, TOKENS, WIDTH)
    norm, column, row = layers(seed)
    whole = x + row(F.gelu(column(norm(x))))
    block = cut(exercise, seed, rank, world_size)
    found = block(own(x, rank, world_size))
    slice_ = own(whole, rank, world_size).detach()
    expect.close(found, slice_, "the output of the block")
    parts = [(whole * factors).chunk(world_size, 1)[r].sum() for r in range(world_size)]
    kept = {"norm.weight": norm.weight, "norm.bias": norm.bias, "row.bias": row.bias}
    part_of = dict(
        zip(
            kept,
            torch.autograd.grad(parts[rank], list(kept.values()), retain_graph=True),
            strict=True,
        )
    )
    sum(parts).backward()
    (found * own(factors, rank, world_size)).sum().backward()
    exercise.sum_gradients(block)
    right = {
        "norm.weight": norm.weight.grad,
        "norm.bias": norm.bias.grad,
        "row.bias": row.bias.grad,
        "column.weight": own(column.weight.grad, rank, world_size, 0),
        "column.bias": own(column.bias.grad, rank, world_size, 0),
        "row.weight": own(row.weight.grad, rank, world_size, 1),
    }
    found_grads = {name: p.grad for name, p in block.named_parameters()}
    cuts = {"column.weight": (column.weight, 0), "column.bias": (column.bias, 0)}
    cuts["row.weight"] = (row.weight, 1)
    for name, expected in right.items():
        names = {
            "the mean of the ranks' parts, where their sum is wanted": (
                expected / world_size
            ),
            "added up twice": expected * world_size,
        }
        if name in part_of:
            names["the part of this rank's slice: it wasn't added up"] = part_of[name]
        if name in cuts:
            parameter, dim = cuts[name]
            names["added up over the ranks, and each has a part of its own here"] = sum(
                parameter.grad.chunk(world_size, dim)
            )
        what = f"{name}.grad after sum_gradients"
        expect.close(found_grads[name], expected, what, mistaken=names)
