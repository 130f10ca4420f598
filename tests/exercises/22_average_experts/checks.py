"""Checks of exercises/22_average_experts.py: against the mean of all losses."""

import time

import pytest
import torch
import torch.distributed as dist
from torch import nn

from workshop.grader import expect, variants

expect.nothing_is_averaged()

SHAPES = [(3, 2), (3, 2)]


def ranks_of_group(rank, expert_ranks):
    """The ranks whose tokens reach this rank's experts."""
    first = rank // expert_ranks * expert_ranks
    return range(first, first + expert_ranks)


def copies_of(rank, world_size, expert_ranks, *, every="e", itself=True):
    """The ranks with copies; the keywords are what goes wrong."""
    step = expert_ranks
    if every == "N / e":
        step = world_size // expert_ranks
    found = [r for r in range(world_size) if (r - rank) % step == 0]
    return [r for r in found if itself or r != rank]


WRONG_COPIES = {
    "every (N / e)th rank had a copy: copies are e ranks apart": {"every": "N / e"},
    "a rank weren't among the ranks with its experts": {"itself": False},
}


def groups_of(rank, world_size, expert_ranks):
    """The group of ranks with the same experts; every rank makes all of them."""
    own = None
    for first in range(expert_ranks):
        ranks = list(range(first, world_size, expert_ranks))
        group = dist.new_group(ranks)
        if rank in ranks:
            own = group
    return own


def gradient(seed, loss, owner, index):
    """That of rank ``loss``'s loss, for parameter ``index`` of ``owner``."""
    number = seed + 1000 * loss + 100 * (owner + 1) + index
    generator = torch.Generator().manual_seed(number)
    return torch.randn(SHAPES[index], generator=generator, dtype=torch.float64)


def parameters():
    return [nn.Parameter(torch.ones(s, dtype=torch.float64)) for s in SHAPES]


def compare(exercise, rank, world_size, expert_ranks, seed, idle=()):
    """``idle``: ranks on which no token chose the first parameter's expert."""
    others, experts = parameters(), parameters()
    which = rank % expert_ranks  # which part of the experts is here
    copies = copies_of(rank, world_size, expert_ranks)

    def of_group(r, index):
        """What backward leaves on rank r: a sum over the losses of its group."""
        if index == 0 and r in idle:
            return torch.zeros(SHAPES[0], dtype=torch.float64)
        losses = ranks_of_group(r, expert_ranks)
        return sum(gradient(seed, loss, which, index) for loss in losses)

    for index in range(len(SHAPES)):
        others[index].grad = gradient(seed, rank, -1, index)
        experts[index].grad = of_group(rank, index)
    if rank in idle:
        experts[0].grad = None
    group = groups_of(rank, world_size, expert_ranks)
    exercise.average_gradients(others, experts, group)
    label = f"with {expert_ranks} expert ranks of {world_size}"
    for index in range(len(SHAPES)):
        losses = [gradient(seed, loss, -1, index) for loss in range(world_size)]
        total, of_copies = sum(losses), sum(losses[r] for r in copies)
        what = f"gradient {index} of the others, {label}"
        own = losses[rank]
        names = {
            "the sum over the ranks: divide it": total,
            "this rank's own: all ranks have this parameter": own,
            "this rank's own, divided: all ranks have this parameter": own / world_size,
            "the mean over the ranks with its experts: all ranks have this parameter": (
                of_copies / len(copies)
            ),
            "the sum over the ranks with its experts, divided by N: all ranks have "
            "this parameter": of_copies / world_size,
        }
        expect.close(others[index].grad, total / world_size, what, mistaken=names)
    for index in range(len(SHAPES)):
        total = sum(of_group(r, index) for r in copies)
        every = sum(of_other(seed, r, index, expert_ranks) for r in range(world_size))
        what = f"gradient {index} of the experts, {label}"
        own = of_group(rank, index)
        names = {
            "the mean over the copies: it's a sum over more losses": total
            / len(copies),
            "averaged over all ranks, which have other experts": every / world_size,
            "the sum over the copies: divide it": total,
            "this rank's own, divided: other ranks have copies": own / world_size,
            "this rank's own, divided by the number of copies: they have to be added": (
                own / len(copies)
            ),
            "this rank's own, divided by e: other ranks have copies": own
            / expert_ranks,
            "this rank's own: other ranks have copies": own,
        }
        if len(copies) == 1:
            own_only = (
                "as backward left it, a sum over the losses of all ranks: divide it by "
                "their number"
            )
            names = {own_only: own, **names}
        expect.close(experts[index].grad, total / world_size, what, mistaken=names)


def of_other(seed, rank, index, expert_ranks):
    """The gradient of the experts that rank ``rank`` has."""
    losses = ranks_of_group(rank, expert_ranks)
    which = rank % expert_ranks
    return sum(gradient(seed, loss, which, index) for loss in losses)


@pytest.mark.ranks(1)
def test_ranks_with_copies(exercise):
    """ranks_with_copies: the ranks e, 2 e, ... away."""
    sizes = (4, 2), (6, 2), (6, 3), (3, 3), (4, 1), (12, 4)
    cases = [(rank, ranks, e) for ranks, e in sizes for rank in range(ranks)]

    def asked(*case):
        return list(exercise.ranks_with_copies(*case))

    cause = variants.cause_in(asked, cases, copies_of, WRONG_COPIES)
    for world_size, expert_ranks in sizes:
        for rank in range(world_size):
            found = exercise.ranks_with_copies(rank, world_size, expert_ranks)
            what = f"ranks_with_copies({rank}, {world_size}, {expert_ranks})"
            right = copies_of(rank, world_size, expert_ranks)
            group = list(ranks_of_group(rank, expert_ranks))
            listed = list(found) if isinstance(found, (list, tuple, range)) else found
            if listed != right:
                expect.that(
                    listed != group,
                    f"{what} is {group}: these hold all experts together, none twice",
                )
            expect.equal(listed, right, what, cause=cause)


@pytest.mark.ranks(3)
def test_no_rank_has_a_copy(exercise, rank, world_size, seed):
    """As many expert ranks as ranks: an expert's gradient is complete, but a sum."""
    compare(exercise, rank, world_size, world_size, seed)


@pytest.mark.ranks(4)
def test_two_copies_of_each_expert(exercise, rank, world_size, seed):
    """Data 2 x experts 2: sums over the copies, divided by all ranks."""
    if rank == 1:
        time.sleep(0.05)
    compare(exercise, rank, world_size, 2, seed)


@pytest.mark.ranks(3, 4)
def test_every_rank_has_all_experts(exercise, rank, world_size, seed):
    """One expert rank: plain data parallel."""
    compare(exercise, rank, world_size, 1, seed)


@pytest.mark.ranks(4)
def test_an_expert_without_a_gradient(exercise, rank, world_size, seed):
    """No token chose an expert of rank 2; its copy on rank 0 has a gradient."""
    compare(exercise, rank, world_size, 2, seed, idle=(2,))
    compare(exercise, rank, world_size, 2, seed, idle=(0, 2))
    compare(exercise, rank, world_size, 1, seed, idle=(1, 3))
