"""What test_16_fsdp_tensor_parallel.py has the grader's engine run in every rank."""

import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import ByteGPT, Sizes, next_byte_loss
from common.cost.measure import Traffic, count_step
from common.gpt_training import _sum_over_ranks
from common.parallel.mesh import Grid, make_mesh

cost = import_module("instruments.16_cost")
axis_ranks = cost.axis_ranks
fsdp_tensor_parallel = import_module("16_fsdp_tensor_parallel")
part_of = fsdp_tensor_parallel.part_of
shard = fsdp_tensor_parallel.shard
train_step = fsdp_tensor_parallel.train_step

# 5 places and 24 rows do not divide among all axes; 12 heads divide among 2, 3, 4, 6
SIZES = Sizes(width=24, heads=12, blocks=2, context=5)
BATCH = 12
GRIDS = {
    2: [Grid(1, 1, 2), Grid(1, 2, 1), Grid(2, 1, 1)],
    3: [Grid(1, 3, 1), Grid(1, 1, 3)],
    4: [Grid(1, 2, 2), Grid(2, 2, 1), Grid(2, 1, 2), Grid(1, 1, 4), Grid(1, 4, 1)],
    6: [Grid(1, 2, 3)],
}
# foreach is what GPUs use, where no optimizer is told otherwise
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01, foreach=True),
}


def network(seed):
    """The same on every rank, in float64; no bias and no norm is trivial."""
    torch.manual_seed(seed)
    model = ByteGPT(SIZES).double()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def batch(seed, step):
    generator = torch.Generator().manual_seed(1000 * seed + step)
    pieces = torch.randint(256, (BATCH, SIZES.context + 1), generator=generator)
    return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()


def whole(tensor):
    return tensor.full_tensor()


def one_step_alone(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    scores = model(inputs)
    loss = next_byte_loss(scores, targets)
    loss.backward()
    optimizer.step()
    return scores.detach(), loss.item()


def compare(grid, seed, kind):
    alone, model = network(seed), network(seed)
    mesh = make_mesh(grid, torch.device("cpu"))
    shard(model, mesh)
    optimizer = OPTIMIZERS[kind](model.parameters())
    optimizer_alone = OPTIMIZERS[kind](alone.parameters())
    label = f"{kind} on {grid}"
    named = zip(model.named_parameters(), alone.parameters(), strict=True)
    pairs = [(name, mine, theirs) for (name, mine), theirs in named]
    for step in range(3):
        inputs, targets = batch(seed, step)
        parts = part_of(inputs, grid), part_of(targets, grid)
        if step == 0:
            with torch.no_grad():
                scores = model(parts[0])
        expected, loss_alone = one_step_alone(alone, optimizer_alone, inputs, targets)
        loss = train_step(model, optimizer, *parts) / dist.get_world_size()
        (loss,) = _sum_over_ranks([loss])
        expect.close(loss, loss_alone, f"loss of step {step}, {label}")
        if step == 0:
            expect.close(scores, part_of(expected, grid), f"scores, {label}")
            for name, mine, theirs in pairs:
                expect.close(whole(mine.grad), theirs.grad, f"{name}.grad, {label}")
    for name, mine, theirs in pairs:
        expect.close(whole(mine), theirs, f"{name} after 3 steps, {label}")


@pytest.mark.ranks(4, 6, limit=100)
def test_grid_trains_as_one_process(rank, world_size, seed):
    """Scores, losses, gradients and weights of three steps are those of one process."""
    for grid in GRIDS[world_size]:
        two_axes = sum(size > 1 for size in grid.axes.values()) > 1
        for kind in OPTIMIZERS if two_axes else ["AdamW"]:
            compare(grid, seed, kind)


@pytest.mark.ranks(4, 6, limit=100)
def test_rank_0_holds_and_sends_what_the_formulas_say(rank, world_size, seed):
    """Also where the axes do not divide the rows."""
    for grid in GRIDS[world_size]:
        mesh = make_mesh(grid, torch.device("cpu"))
        torch.manual_seed(seed)
        model = shard(ByteGPT(SIZES), mesh)
        optimizer = OPTIMIZERS["AdamW"](model.parameters())
        inputs, targets = (part_of(x, grid) for x in batch(seed, 0))
        with Traffic() as traffic:
            step = partial(train_step, model, optimizer, inputs, targets)
            found = count_step(model, optimizer, step)
        if rank > 0:
            continue
        del found["sent in a step"]  # it is counted along each axis below
        expect.equal(found, cost.held(SIZES, grid, BATCH), f"held, {grid}")
        formula = cost.sent(SIZES, grid, BATCH)
        for axis, size in grid.axes.items():
            if size > 1:
                ranks = axis_ranks(mesh, axis)
                size, count = cost.along_axes(traffic.calls, {axis: ranks})
                name = f"{axis} axis"
                expect.equal(size[name], formula[name], f"sent on {axis}, {grid}")
                calls = cost.calls(SIZES, grid)[name]
                expect.equal(count[name], calls, f"calls on {axis}, {grid}")


@pytest.mark.ranks(4, 6)
def test_places_and_groups_follow_from_the_number_of_the_rank(rank, world_size, seed):
    """The last axis varies fastest; a tensor group sees one part of the batch."""
    for grid in GRIDS[world_size]:
        mesh = make_mesh(grid, torch.device("cpu"))
        tensor_group = axis_ranks(mesh, "tensor")
        first = rank // grid.tensor * grid.tensor
        expected = tuple(range(first, first + grid.tensor))
        expect.equal(tensor_group, expected, f"the tensor group on {grid}")
        parts = [None] * world_size
        dist.all_gather_object(parts, grid.batch_part(rank))
        expect.equal(sorted(set(parts)), list(range(grid.batch_parts)), "parts")
        expect.equal({parts[r] for r in tensor_group}, {parts[rank]}, "one part")
