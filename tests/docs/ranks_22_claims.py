"""What docs/lessons/22_experts says of mistakes and of torch, in ranks.

Each function runs in every rank, as a check of an exercise does; the docstring is the
sentence on the page. test_22_experts_claims.py has them run.
"""

import copy
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.mixture import Mixture, MixtureOfExperts
from common.parallel import expert_parallel as ep

WIDTH, EXPERTS, TOKENS = 4, 12, 10


def layer_of(seed, **options):
    torch.manual_seed(seed)
    mixture = Mixture(EXPERTS, 2, **options)
    return MixtureOfExperts(WIDTH, 6, mixture).double()


def spread(layer, grid):
    own = copy.deepcopy(layer)
    ep.spread_experts(own, grid)
    return own


def tokens_of(seed, rank):
    generator = torch.Generator().manual_seed(seed + rank)
    return torch.randn(TOKENS, WIDTH, generator=generator, dtype=torch.float64)


@pytest.mark.ranks(3)
def test_plain_ddp_makes_all_experts_those_of_rank_0(rank, world_size, seed):
    """Plain DDP overwrites every rank's experts, averages different ones, and fails
    with no error: all ranks have the same experts after a step."""
    split = spread(layer_of(seed), ep.make_grid())
    before = split.experts.up.detach().clone()
    first = before.clone()
    dist.broadcast(first, 0)
    expect.equal(torch.equal(before, first), rank == 0, "whether experts are rank 0's")
    ddp_model = DistributedDataParallel(split)
    expect.equal(split.experts.up.detach(), first, "the experts in DDP")
    optimizer = torch.optim.SGD(split.parameters(), 0.1)
    ddp_model(tokens_of(seed, rank)).square().mean().backward()
    optimizer.step()
    expect.same_on_all_ranks(split.experts.up.detach(), "the experts after a step")
    del ddp_model


@pytest.mark.ranks(4)
def test_experts_divided_by_their_copies(rank, world_size, seed):
    """Experts' gradients are e times too large if they're divided by the copies."""
    grid = ep.make_grid(2)
    split = spread(layer_of(seed), grid)
    split(tokens_of(seed, rank)).square().mean().backward()
    sums = split.experts.up.grad.clone()
    dist.all_reduce(sums, group=grid.copies)
    ep.average_gradients(split, grid)
    expect.close(sums / 2, 2 * split.experts.up.grad, "the sum over two copies, halved")


@pytest.mark.ranks(4)
def test_sharded_experts_divide_by_all_ranks(rank, world_size, seed):
    """Experts sharded over their copies get the right gradients with a divide factor
    of N, and e times too large ones without."""
    grid = ep.make_grid(2)
    layer = layer_of(seed)
    split = spread(layer, grid)
    split(tokens_of(seed, rank)).square().mean().backward()
    ep.average_gradients(split, grid)
    right = split.experts.up.grad
    for factor, times in ((None, 2), (world_size, 1)):
        sharded = spread(layer, grid)
        fully_shard(sharded.experts, mesh=DeviceMesh.from_group(grid.copies, "cpu"))
        if factor:
            sharded.experts.set_gradient_divide_factor(factor)
            # gloo can't multiply and add in one call
            sharded.experts.set_force_sum_reduction_for_comms(True)
        sharded(tokens_of(seed, rank)).square().mean().backward()
        found = sharded.experts.up.grad.full_tensor()
        expect.close(found, times * right, f"gradients with the factor {factor}")


@pytest.mark.ranks(1, 3)
def test_rows_by_sender(rank, world_size, seed):
    """Outputs are right in one process, and wrong on several ranks, if rows that
    arrive by sender are computed as if they were by expert."""
    layer, grid, tokens = layer_of(seed), ep.make_grid(), tokens_of(seed, rank)
    split = spread(layer, grid)
    right = layer(tokens)
    by_expert = ep.by_expert
    ep.by_expert = in_order_of_arrival
    found = split(tokens)
    ep.by_expert = by_expert
    same = [None] * world_size
    dist.all_gather_object(same, torch.allclose(found, right))
    expect.equal(all(same), world_size == 1, "whether the outputs are right")


def in_order_of_arrival(arriving):
    return torch.arange(int(arriving.sum()))


@pytest.mark.ranks(3)
def test_capacity_of_own_tokens_drops_others(rank, world_size, seed):
    """The loss differs from that of one process once tokens are dropped."""
    layer = layer_of(seed, capacity_factor=0.5)
    split = spread(layer, ep.make_grid())
    own = split(tokens_of(seed, rank))
    together = torch.cat([tokens_of(seed, r) for r in range(world_size)])
    whole = layer(together)[rank * TOKENS : (rank + 1) * TOKENS]
    same = [None] * world_size
    dist.all_gather_object(same, torch.allclose(own, whole))
    expect.that(not all(same), "the same tokens are dropped")


@pytest.mark.ranks(2)
def test_all_to_all_records_nothing_for_autograd(rank, world_size, seed):
    """dist.all_to_all_single records nothing for autograd."""
    sent = torch.ones(2, 3, requires_grad=True)
    received = torch.empty(2, 3)
    dist.all_to_all_single(received, sent)
    expect.that(not received.requires_grad, "it has a gradient")
