"""What docs/lessons/23_loose_coupling says of mistakes, in ranks.

Each function runs in every rank, as a check of an exercise does, and is a row or a
sentence on the page. test_23_loose_coupling_claims.py has them run.
"""

import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common import local_steps as ls
from common.local_steps import OuterRule

K, ROUNDS = 4, 3


def least_squares(seed):
    """A loss with one minimum, and noise of its own in each rank's data."""
    target = torch.arange(1.0, 6.0, dtype=torch.float64)

    def loss(weights, number):
        generator = torch.Generator().manual_seed(number)
        rows = torch.randn(8, 5, generator=generator, dtype=torch.float64)
        noise = torch.randn(8, generator=generator, dtype=torch.float64)
        return (rows @ (weights - target) + noise).square().mean()

    return loss, target


def train(seed, synchronize, seeds_differ=True):
    """The weights after some rounds, and what the outer steps agreed on."""
    loss, target = least_squares(seed)
    weights = torch.nn.Parameter(torch.zeros(5, dtype=torch.float64))
    optimizer = torch.optim.AdamW([weights], 0.1)
    (fragment,) = ls.make_fragments([weights])
    for step in range(K * ROUNDS):
        number = 1000 * seed + step * dist.get_world_size()
        number += dist.get_rank() if seeds_differ else 0
        optimizer.zero_grad()
        loss(weights, number).backward()
        optimizer.step()
        if (step + 1) % K == 0:
            synchronize(fragment)
    return weights.detach(), fragment, (weights.detach() - target).norm().item()


def right(fragment):
    ls.outer_step(fragment, OuterRule())


@pytest.mark.ranks(3)
def test_views_of_the_agreed_parameters_stop_the_training(rank, world_size, seed):
    """vector_to_parameters doesn't copy; the next difference is 0."""
    differences = []

    @torch.no_grad()
    def with_views(fragment):
        difference = fragment.shared - parameters_to_vector(fragment.parameters)
        differences.append(difference.abs().max().item())
        gradient = ls.mean(difference)
        ls.nesterov_step(fragment.shared, fragment.momentum, gradient, OuterRule())
        vector_to_parameters(fragment.shared, fragment.parameters)

    train(seed, with_views)
    expect.that(differences[0] > 0, "the first difference is 0")
    expect.equal(differences[1:], [0.0] * (ROUNDS - 1), "the later differences")


@pytest.mark.ranks(3)
def test_other_sign_leads_away(rank, world_size, seed):
    @torch.no_grad()
    def turned_round(fragment):
        difference = parameters_to_vector(fragment.parameters) - fragment.shared
        gradient = ls.mean(difference)
        ls.nesterov_step(fragment.shared, fragment.momentum, gradient, OuterRule())
        ls.copy_to_parameters(fragment, fragment.shared)

    away = train(seed, turned_round)[2]
    start = least_squares(seed)[1].norm().item()
    expect.that(away > start > train(seed, right)[2], f"{away} is not farther")


@pytest.mark.ranks(3)
def test_steps_from_own_parameters_leave_ranks_different(rank, world_size, seed):
    @torch.no_grad()
    def from_own(fragment):
        own = parameters_to_vector(fragment.parameters)
        gradient = ls.mean(fragment.shared - own)
        fragment.shared.copy_(own)
        ls.nesterov_step(fragment.shared, fragment.momentum, gradient, OuterRule())
        ls.copy_to_parameters(fragment, fragment.shared)

    others = ls.gather(train(seed, from_own)[0]).view(world_size, -1)
    expect.that(not torch.equal(others[0], others[1]), "they are equal")
    expect.same_on_all_ranks(train(seed, right)[0], "parameters")


@pytest.mark.ranks(3)
def test_same_text_on_all_ranks_is_one_rank(rank, world_size, seed):
    """The mean of equal differences is this rank's own."""

    def own_difference_only(fragment):
        with torch.no_grad():
            gradient = fragment.shared - parameters_to_vector(fragment.parameters)
            ls.nesterov_step(fragment.shared, fragment.momentum, gradient, OuterRule())
            ls.copy_to_parameters(fragment, fragment.shared)

    together, _, _ = train(seed, right, seeds_differ=False)
    alone, _, _ = train(seed, own_difference_only, seeds_differ=False)
    expect.close(together, alone, "parameters")


@pytest.mark.ranks(3)
def test_moments_of_rank_0_are_not_those_of_the_others(rank, world_size, seed):
    """So a snapshot with rank 0's alone doesn't continue the others' training."""
    loss, _ = least_squares(seed)
    ends = []
    for own_moments in (True, False):
        weights = torch.nn.Parameter(torch.zeros(5, dtype=torch.float64))
        optimizer = torch.optim.AdamW([weights], 0.1)
        for step in range(2 * K):
            if step == K and not own_moments:
                for value in optimizer.state[weights].values():
                    dist.broadcast(value, src=0)
            optimizer.zero_grad()
            loss(weights, 1000 * seed + step * world_size + rank).backward()
            optimizer.step()
        ends.append(weights.detach())
    same = torch.equal(*ends)
    expect.equal(same, rank == 0, "whether this rank continues as before")
