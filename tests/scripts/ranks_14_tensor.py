"""Layers cut by hand, in ranks: the numbers of one process, and of parallelize_module.

Each function runs in every rank, as a check of an exercise does;
test_14_tensor_parallel.py has them run.
"""

import copy
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import DTensor

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import BYTES, MLP, Attention, ByteGPT, Sizes, next_byte_loss
from common.cost.measure import Activations, Traffic
from common.distributed import BadInput
from common.parallel.tensor_parallel import (
    SLICES,
    kept_whole,
    sum_kept_whole,
    take_slice,
    vocabulary_loss,
    whole_scores,
)

tensor_by_hand = import_module("14_tensor_by_hand")
ColumnLinear, RowLinear = tensor_by_hand.ColumnLinear, tensor_by_hand.RowLinear
ParallelAttention = tensor_by_hand.ParallelAttention
ParallelMLP, split_gpt = tensor_by_hand.ParallelMLP, tensor_by_hand.split_gpt
own_part, summed = tensor_by_hand.own_part, tensor_by_hand.summed
WHOLE = tensor_by_hand.WHOLE
cost = import_module("instruments.14_cost")

SIZES = Sizes(width=24, heads=12, blocks=2, context=12)
BORDERS = {"whole": WHOLE, "in slices": SLICES}
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01),
}


def drawn(module, seed):
    """The module in float64; no bias is zero, and no scale is one."""
    torch.manual_seed(seed)
    for parameter in module.double().parameters():
        with torch.no_grad():
            parameter += 0.1 * torch.randn_like(parameter)
    return module


def gpt(seed, blocks=SIZES.blocks):
    torch.manual_seed(seed)
    return drawn(ByteGPT(replace(SIZES, blocks=blocks)), seed)


def batches(seed, steps=3):
    """(inputs, targets) of each step, [3, T] each, the same on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    shape = steps, 2, 3, SIZES.context
    return torch.randint(BYTES, shape, generator=generator)


def own(whole, part):
    """What this rank should have of a tensor of which ``part`` is its own part."""
    for dim in range(whole.dim()):
        if whole.shape[dim] != part.shape[dim]:
            whole = whole.chunk(dist.get_world_size(), dim)[dist.get_rank()]
    return whole


def compare_gradients(split, whole, what):
    """Each gradient of the split module is a part of that of the whole one."""
    theirs = dict(whole.named_parameters())
    for name, parameter in split.named_parameters():
        grad = theirs[name].grad
        expect.close(parameter.grad, own(grad, parameter), f"{name}.grad, {what}")


def compare_layer(split, whole, x, what):
    """Output, gradient of the input, gradients of the parameters."""
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, expected = split(ours), whole(theirs)
    expect.close(y, own(expected, y), f"the output, {what}")
    weights = torch.randn_like(expected)  # the same on all ranks
    (y * own(weights, y)).sum().backward()
    (expected * weights).sum().backward()
    expect.close(ours.grad, theirs.grad, f"the gradient of the input, {what}")
    compare_gradients(split, whole, what)


@pytest.mark.ranks(2, 3)
def test_linear_layers_equal_the_whole_ones(rank, world_size, seed):
    """Not square, with biases, and 10 columns or rows, which 3 and 4 do not divide."""
    torch.manual_seed(seed)  # else every rank draws other numbers
    whole = drawn(nn.Linear(7, 10), seed)
    column = ColumnLinear(whole, WHOLE.enter)
    ours = torch.randn(4, 3, 7, dtype=torch.float64).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    y, expected = column(ours), whole(theirs)
    expect.close(y, own(expected, y), "columns: the output")
    y.square().sum().backward()
    expected.square().sum().backward()
    expect.close(ours.grad, theirs.grad, "columns: the gradient of the input")
    compare_gradients(column, whole, "columns")

    whole = drawn(nn.Linear(10, 7), seed + 1)
    row = RowLinear(whole, WHOLE.leave)
    x = torch.randn(4, 3, 10, dtype=torch.float64)
    ours = own_part(x, 2).requires_grad_()
    theirs = x.clone().requires_grad_()
    y, expected = row(ours), whole(theirs)
    expect.close(y, expected, "rows: the output")
    y.square().sum().backward()
    expected.square().sum().backward()
    expect.close(ours.grad, own(theirs.grad, ours), "rows: the gradient of the input")
    compare_gradients(row, whole, "rows")


@pytest.mark.ranks(2, 3)
def test_mlp_and_attention_equal_the_whole_ones(rank, world_size, seed):
    """Twenty hidden numbers, which 3 ranks do not divide; heads must be divided."""
    torch.manual_seed(seed)  # else every rank draws other numbers
    x = torch.randn(2, 12, 5, dtype=torch.float64)
    whole = drawn(MLP(Sizes(5, 1, 1, 12)), seed)
    compare_layer(ParallelMLP(whole, WHOLE), whole, x, "MLP")
    x = torch.randn(2, 12, 24, dtype=torch.float64)
    whole = drawn(Attention(SIZES), seed)
    compare_layer(ParallelAttention(whole, WHOLE), whole, x, "attention")
    five = Attention(Sizes(10, 5, 1, 12))
    expect.raises(
        BadInput, ParallelAttention, five, WHOLE, words=["--heads 5", "divided"]
    )


@pytest.mark.ranks(2, 3)
def test_one_all_reduce_per_layer_and_direction(rank, world_size, seed):
    """Attention and MLP: one in forward, one in backward, each. In slices: an
    all_gather and a reduce_scatter instead, and the same bytes on the wire."""
    bytes_sent = {}
    for name, borders in BORDERS.items():
        start = torch.randn(3, 12, 24, dtype=torch.float64)
        x = (take_slice(start) if borders.sliced else start).requires_grad_()
        for make, whole in (
            (ParallelMLP, MLP(SIZES)),
            (ParallelAttention, Attention(SIZES)),
        ):
            layer = make(whole.double(), borders)
            with Traffic() as forward:
                y = layer(x)
            with Traffic() as backward:
                y.square().sum().backward()
            for way, traffic in (("forward", forward), ("backward", backward)):
                ops = [call.op for call in traffic.calls]
                once = ["all_reduce"]
                if borders.sliced:
                    once = ["all_gather", "reduce_scatter"]
                expect.equal(sorted(ops), once, f"{make.__name__}, {way}, {name}")
                size = 3 * 12 * 24 * 8
                ring = 2 * size * (world_size - 1) // world_size
                sent = traffic.wire_bytes()
                expect.equal(sent, ring, f"bytes of {make.__name__}, {way}, {name}")
                bytes_sent[name] = bytes_sent.get(name, 0) + sent
    expect.equal(bytes_sent["in slices"], bytes_sent["whole"], "bytes on the wire")


@pytest.mark.ranks(2, 3)
def test_gpt_equals_one_process(rank, world_size, seed):
    """Scores, loss and every gradient; 256 scores are not divided by 3."""
    inputs, targets = batches(seed)[0]
    for name, borders in BORDERS.items():
        whole, split = gpt(seed), gpt(seed)
        split_gpt(split, borders)
        scores = split(inputs)
        expect.close(whole_scores(scores), whole(inputs), f"the scores, {name}")
        loss = vocabulary_loss(scores, targets)
        expected = next_byte_loss(whole(inputs), targets)
        expect.close(loss, expected, f"the loss, {name}")
        loss.backward()
        expected.backward()
        if borders.sliced:
            sum_kept_whole(split)
        compare_gradients(split, whole, name)


@pytest.mark.ranks(2, 3, limit=40)
def test_trains_like_one_process_and_like_torch(rank, world_size, seed):
    """The parameters after three steps of SGD and of AdamW, by hand and by
    parallelize_module; what is whole on each rank stays equal, bit for bit."""
    tensor_parallel = import_module("14_tensor_parallel")

    mesh = tensor_parallel.init_device_mesh("cpu", (world_size,))
    for kind, make in OPTIMIZERS.items():
        for name, borders in BORDERS.items():
            whole, split, theirs = (gpt(seed, blocks=1) for _ in range(3))
            split_gpt(split, borders)
            tensor_parallel.split_gpt(theirs, mesh, borders.sliced)
            optimizers = [make(m.parameters()) for m in (whole, split, theirs)]
            for batch in batches(seed):
                alone = plain_step(whole, optimizers[0], *batch)
                ours = tensor_by_hand.train_step(split, optimizers[1], *batch)
                torchs = tensor_parallel.train_step(theirs, optimizers[2], *batch)
                expect.close(ours, alone, f"the loss by hand, {name}, {kind}")
                expect.close(torchs, alone, f"the loss by torch, {name}, {kind}")
            reference = dict(whole.named_parameters())
            torchs = dict(theirs.named_parameters())
            what = f"after 3 steps of {kind}, {name}"
            for key, parameter in split.named_parameters():
                expect.close(parameter, own(reference[key], parameter), f"{key} {what}")
                other = torchs[key]
                if isinstance(other, DTensor):
                    other = other.full_tensor()
                expect.close(other, reference[key], f"{key} of torch {what}")
            for parameter in kept_whole(split):
                expect.same_on_all_ranks(parameter, f"what is whole, {what}")


def plain_step(model, optimizer, inputs, targets):
    """A step of one process; the loss."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.mark.ranks(2, 3)
def test_loss_over_parts_of_the_vocabulary(rank, world_size, seed):
    """Scores times 60, an uneven vocabulary of 10, targets on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    scores = 60 * torch.randn(2, 9, 10, generator=generator, dtype=torch.float64)
    targets = torch.randint(10, (2, 9), generator=generator)
    mine = own_part(scores, 2).requires_grad_()
    scores.requires_grad_()
    loss = vocabulary_loss(mine, targets, vocabulary=10)
    expected = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
    expect.close(loss, expected, "the loss")
    (3 * loss).backward()
    (3 * expected).backward()
    expect.close(mine.grad, own(scores.grad, mine), "the gradient of the own scores")


@pytest.mark.ranks(2, 3)
def test_held_and_sent_equal_the_formulas_on_each_rank(rank, world_size, seed):
    """Activations of a block by the paper's formula without dropout, and the rest."""
    model = ByteGPT(SIZES)
    for name, borders in BORDERS.items():
        split = copy.deepcopy(model)
        split_gpt(split, borders)
        numbers = sum(parameter.numel() for parameter in split.parameters())
        expected = cost.parameters(SIZES, world_size, rank)
        expect.equal(numbers, expected, f"parameters, {name}")
        whole = sum(parameter.numel() for parameter in kept_whole(split))
        expect.equal(whole, cost.kept_whole(SIZES), "of them whole")
        # clones: a view would count with all the memory that it looks at
        inputs, targets = (tokens.clone() for tokens in batches(seed)[0])
        with Activations(split) as activations:
            vocabulary_loss(split(inputs), targets)
        expected = cost.activations(SIZES, 3, world_size, rank, borders.sliced)
        expect.equal(activations.peak_bytes, expected, f"activations, {name}")
        x = torch.randn(3, 12, 24, requires_grad=True)
        block, start = split.blocks[0], take_slice(x) if borders.sliced else x
        with Activations(split) as activations:
            block(start)
        expected = cost.block_activations(SIZES, 36, world_size, borders.sliced)
        expect.equal(activations.peak_bytes, 4 * expected, f"of a block, {name}")


@pytest.mark.ranks(3)
def test_sum_leaves_what_it_is_given(rank, world_size, seed):
    """A gradient that is one number in many places, as sum() gives, can be summed."""
    x = torch.full((2000, 400), float(rank), requires_grad=True)
    WHOLE.enter(x).sum().backward()
    expect.equal(x.grad, torch.full_like(x, 3.0), "the gradient")
    total = summed(x.detach())
    expect.equal(total, torch.full_like(total, 3.0), "the sum")
    expect.that(bool((x == rank).all()), "the summand was overwritten")


@pytest.mark.ranks(3)
def test_what_cannot_be_cut_is_refused(rank, world_size, seed):
    """A context that the ranks do not divide, and fewer columns than ranks."""
    expect.raises(
        BadInput, take_slice, torch.zeros(1, 10, 4), words=["--context 10", "3 ranks"]
    )
    few, words = nn.Linear(5, 2), ["2 parts", "3 ranks"]
    expect.raises(BadInput, ColumnLinear, few, WHOLE.enter, words=words)
