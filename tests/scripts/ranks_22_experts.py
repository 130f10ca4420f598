"""Experts spread over ranks: the mixture and training of one process, what is sent.

Each function runs in every rank, as a check of an exercise does;
test_22_experts.py has them run.
"""

import copy
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common import mixture as mx
from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.cost.measure import Traffic
from common.distributed import BadInput
from common.mixture import Mixture, MixtureOfExperts
from common.parallel import expert_parallel as ep

WIDTH, HIDDEN = 6, 10
EXPERTS = 12  # for 2, 3 and 4 ranks
SIZES = Sizes(width=24, heads=4, blocks=2, context=8)
FLOAT64 = 8  # bytes
UNEQUAL = [5, 0, 9, 2]  # tokens of each rank: one has none


def drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def layer_of(seed, **options):
    torch.manual_seed(seed)
    mixture = Mixture(**({"experts": EXPERTS, "chosen": 3} | options))
    return MixtureOfExperts(WIDTH, HIDDEN, mixture).double()


def prefer(layer, experts):
    """Every token chooses these experts; so all others get none."""
    with torch.no_grad():
        layer.router.bias[list(experts)] = 10.0


def spread(layer, grid):
    layer.chances = None  # with a graph that can't be copied
    own = copy.deepcopy(layer)
    ep.spread_experts(own, grid)
    return own


def rows_of(rank, counts):
    return slice(sum(counts[:rank]), sum(counts[: rank + 1]))


def compare_with_one_process(layer, grid, counts, seed, what):
    """Outputs, gradients of tokens and of all parameters, each in float64."""
    world_size, rank = dist.get_world_size(), dist.get_rank()
    tokens = drawn(seed, sum(counts), WIDTH)
    grad_out = drawn(seed + 1, sum(counts), WIDTH)
    split = spread(layer, grid)
    whole = tokens.clone().requires_grad_()
    expected = layer(whole)
    # The ranks' losses are weighted equally: their mean is that of one process.
    expected.backward(grad_out / world_size)
    own = rows_of(rank, counts)
    part = tokens[own].clone().requires_grad_()
    out = split(part)
    expect.close(out, expected[own], f"the outputs, {what}")
    out.backward(grad_out[own])
    of_one = whole.grad[own] * world_size
    expect.close(part.grad, of_one, f"the gradient of tokens, {what}")
    ep.average_gradients(split, grid)
    reference = dict(layer.named_parameters())
    for name, parameter in split.named_parameters():
        right = reference[name].grad
        if name.startswith("experts."):
            right = grid.own(right)
        expect.close(parameter.grad, right, f"the gradient of {name}, {what}")
    layer.zero_grad()


@pytest.mark.ranks(1, 2, 3, 4)
def test_mixture_equals_one_process(rank, world_size, seed):
    """Unequal tokens, a rank without any; unequal loads, experts without any token."""
    counts = UNEQUAL[:world_size]
    grid = ep.make_grid()
    for k in (1, 3):
        layer = layer_of(seed, chosen=k)
        compare_with_one_process(layer, grid, counts, seed, f"k={k}")
    for busy in (range(3), range(EXPERTS - 3, EXPERTS), (0, 5, 11)):
        layer = layer_of(seed)
        prefer(layer, busy)
        what = f"all tokens to experts {list(busy)}"
        compare_with_one_process(layer, grid, counts, seed, what)
    nothing = [0] * world_size
    compare_with_one_process(layer, grid, nothing, seed, "no token at all")


@pytest.mark.ranks(4)
def test_two_copies_of_each_expert_equal_one_process(rank, world_size, seed):
    """Data 2 x experts 2, and data 4 x experts 1: plain data parallel."""
    for expert_ranks in (1, 2):
        grid = ep.make_grid(expert_ranks)
        layer = layer_of(seed)
        what = f"{expert_ranks} expert ranks"
        compare_with_one_process(layer, grid, UNEQUAL, seed, what)
        prefer(layer, (0, 1, 2))
        compare_with_one_process(layer, grid, UNEQUAL, seed, f"{what}, unequal loads")


@pytest.mark.ranks(3)
def test_late_rank_changes_nothing(rank, world_size, seed):
    grid = ep.make_grid()
    for late in range(world_size):
        if rank == late:
            time.sleep(0.1)
        what = f"{late} late"
        compare_with_one_process(layer_of(seed), grid, UNEQUAL[:3], seed, what)


@pytest.mark.ranks(3, 4)
def test_capacity_is_that_of_each_ranks_tokens(rank, world_size, seed):
    """The same tokens are dropped as where one process treats each rank's alone."""
    grid, counts = ep.make_grid(), UNEQUAL[:world_size]
    layer = layer_of(seed, capacity_factor=1.0)
    prefer(layer, (0, 1))
    tokens = drawn(seed, sum(counts), WIDTH)
    own = tokens[rows_of(rank, counts)]
    split = spread(layer, grid)
    expect.close(split(own), layer(own), "the outputs")
    expect.equal(split.counts, layer.counts, "what was kept")
    if len(own):
        expect.that(mx.dropped(layer).item() > 0, "nothing was dropped")


def gpt(seed, mixture):
    torch.manual_seed(seed)
    model = ByteGPT(SIZES)
    mx.replace_mlps(model, mixture)
    return model.double()


def batches(seed, steps=3, batch=12):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(BYTES, (steps, 2, batch, SIZES.context), generator=generator)


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01),
}
MIXTURES = [
    Mixture(EXPERTS, 2, "loss"),
    Mixture(EXPERTS, 1, "bias", shared=True),
]


def step(model, optimizer, inputs, targets, grid=None):
    """A step of one process, or of this rank of a grid; the loss."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs), targets)
    load = mx.loads(model)
    if grid:
        dist.all_reduce(load)
    (loss + mx.balance_loss(model, load)).backward()
    if grid:
        ep.average_gradients(model, grid)
    optimizer.step()
    mx.shift_biases(model, load)
    return loss.detach()


def own_part(batch):
    return batch.chunk(dist.get_world_size())[dist.get_rank()]


def assert_same_weights(split, whole, grid, what):
    reference = whole.state_dict()
    spread_names = {
        name
        for name, parameter in split.named_parameters()
        if parameter in set(ep.expert_parameters(split))
    }
    expect.equal(len(spread_names), 4 * SIZES.blocks, "parameters of experts")
    for name, tensor in split.state_dict().items():
        right = reference[name]
        if name in spread_names:
            right = grid.own(right)
        else:
            expect.same_on_all_ranks(tensor, f"{name}, {what}")
        expect.close(tensor, right, f"{name}, {what}")


def grids(world_size):
    return [ep.make_grid(n) for n in (1, 2, 3, 4) if world_size % n == 0]


@pytest.mark.ranks(2, 3, 4, limit=60)
def test_trains_like_one_process(rank, world_size, seed):
    """Losses, parameters and biases after three steps of SGD and of AdamW."""
    for mixture in MIXTURES:
        for kind, make in OPTIMIZERS.items():
            for grid in grids(world_size):
                what = f"{kind}, {mixture.balance}, {grid.ranks} expert ranks"
                whole, split = gpt(seed, mixture), gpt(seed, mixture)
                ep.spread_experts(split, grid)
                alone, together = make(whole.parameters()), make(split.parameters())
                for inputs, targets in batches(seed):
                    expected = step(whole, alone, inputs, targets)
                    own = own_part(inputs), own_part(targets)
                    loss = step(split, together, *own, grid)
                    dist.all_reduce(loss)
                    expect.close(loss / world_size, expected, f"the loss, {what}")
                assert_same_weights(split, whole, grid, what)


@pytest.mark.ranks(4, limit=60)
def test_resumes_on_another_number_of_ranks(rank, world_size, seed):
    """Saved by 4 expert ranks; continued by 2, by 1, and by one process."""
    mixture = Mixture(EXPERTS, 2, "bias")
    make = OPTIMIZERS["AdamW"]
    whole, first = gpt(seed, mixture), gpt(seed, mixture)
    four = ep.make_grid(4)
    ep.spread_experts(first, four)
    alone, optimizer = make(whole.parameters()), make(first.parameters())
    steps = batches(seed, steps=4)
    for inputs, targets in steps[:2]:
        step(whole, alone, inputs, targets)
        step(first, optimizer, own_part(inputs), own_part(targets), four)
    saved = [ep.whole_state(first, optimizer, four)]
    expect.equal(bool(saved[0]), rank == 0, "whether a rank has the whole state")
    dist.broadcast_object_list(saved)
    resumed = []
    for expert_ranks in (4, 2, 1):
        grid = ep.make_grid(expert_ranks)
        model = gpt(seed + 1, mixture)
        ep.spread_experts(model, grid)
        own = make(model.parameters())
        ep.load_whole_state(model, own, copy.deepcopy(saved[0]), grid)
        resumed.append((model, own, grid))
    single = gpt(seed + 1, mixture)
    of_single = make(single.parameters())
    single.load_state_dict(saved[0]["model"])
    of_single.load_state_dict(copy.deepcopy(saved[0]["optimizer"]))
    for inputs, targets in steps[2:]:
        step(whole, alone, inputs, targets)
        step(single, of_single, inputs, targets)
        for model, own, grid in resumed:
            step(model, own, own_part(inputs), own_part(targets), grid)
    for model, _, grid in resumed:
        assert_same_weights(model, whole, grid, f"resumed by {grid.ranks}")
    for name, tensor in single.state_dict().items():
        expect.close(tensor, whole.state_dict()[name], f"{name}, one process")


@pytest.mark.ranks(3, 4)
def test_bytes_sent_equal_the_formula(rank, world_size, seed):
    """8 bytes for each count; a token's H numbers twice away and twice back."""
    layer, grid, counts = layer_of(seed), ep.make_grid(), UNEQUAL[:world_size]
    prefer(layer, (0, 5))
    split = spread(layer, grid)
    own = drawn(seed + rank, counts[rank], WIDTH).requires_grad_()
    with Traffic() as forward:
        out = split(own)
    with Traffic() as backward:
        out.backward(torch.ones_like(out))
    to_each = split.counts.view(world_size, -1).sum(1)
    rows = [torch.empty_like(to_each) for _ in range(world_size)]
    dist.all_gather(rows, to_each)
    asked = torch.stack(rows)
    away = int(asked[rank].sum() - asked[rank, rank])
    arrive = int(asked[:, rank].sum() - asked[rank, rank])
    of_counts = FLOAT64 * EXPERTS * (world_size - 1) // world_size
    of_rows = FLOAT64 * WIDTH * (away + arrive)
    expect.equal(forward.wire_bytes(), of_counts + of_rows, "bytes sent in forward")
    expect.equal(backward.wire_bytes(), of_rows, "bytes sent in backward")


@pytest.mark.ranks(3)
def test_what_cannot_be_spread_is_refused(rank, world_size, seed):
    words = ["--expert-ranks 2", "a world of 3", "multiple of 2"]
    expect.raises(BadInput, ep.make_grid, 2, words=words)
    layer = layer_of(seed, experts=8)
    words = ["--experts 8", "3 expert ranks", "choose 6 or 9"]
    expect.raises(BadInput, ep.spread_experts, layer, ep.make_grid(), words=words)
