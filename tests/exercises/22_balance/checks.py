"""Checks of exercises/22_balance.py: against the tokens of all ranks in one process."""

import time

import pytest
import torch

from workshop.grader import expect

expect.nothing_is_averaged()

EXPERTS, CHOSEN = 5, 2
WEIGHT, STEP = 0.3, 0.125
TOKENS = (3, 7, 0, 4)  # of each rank


def batch(seed, world_size):
    """The chances and the choices of each rank's tokens."""
    generator = torch.Generator().manual_seed(seed)
    ranks = []
    for tokens in TOKENS[:world_size]:
        shape = tokens, EXPERTS
        scores = torch.randn(shape, generator=generator, dtype=torch.float64)
        chances = (scores + torch.arange(EXPERTS)).softmax(dim=-1)
        ranks.append((chances, chances.topk(CHOSEN, dim=-1).indices))
    return ranks


def load_of(choices):
    """[E]: how many choices of a list fell on each expert."""
    return torch.cat(choices).flatten().bincount(minlength=EXPERTS).double()


def loss_of(chances, load):
    """Equation 4 of Switch Transformers, of all tokens in one process."""
    return WEIGHT * EXPERTS * (load / load.sum() * chances.mean(0)).sum()


@pytest.mark.ranks(3, 4)
def test_the_load_is_that_of_the_batch(exercise, rank, world_size, seed):
    """Every rank learns the load of the whole batch, even one without tokens."""
    choices = [chosen for _, chosen in batch(seed, world_size)]
    if rank == 1:
        time.sleep(0.05)
    load = exercise.loads_of_batch(choices[rank].clone(), EXPERTS)
    own, right = load_of(choices[rank : rank + 1]), load_of(choices)
    names = {
        "the load of this rank's tokens": own,
        "each expert's share of the choices": right / right.sum(),
        "the mean of the ranks' loads": right / world_size,
    }
    expect.close(load, right, "the load", mistaken=names)


@pytest.mark.ranks(3, 4)
def test_the_parts_add_up_to_the_loss(exercise, rank, world_size, seed):
    """The extra loss is that of one process, and so is its gradient."""
    every = [chances for chances, _ in batch(seed, world_size)]
    choices = [chosen for _, chosen in batch(seed, world_size)]
    load = load_of(choices)
    leaves = [chances.clone().requires_grad_() for chances in every]
    whole = loss_of(torch.cat(leaves), load)
    whole.backward()
    own = every[rank].clone().requires_grad_()
    given = load.clone()
    found = exercise.balance_loss(own, given, CHOSEN, WEIGHT)
    expect.unchanged(given, load, "the load that balance_loss was given, afterwards")
    tokens = sum(map(len, every))
    share, summed = load / load.sum(), every[rank].sum(0)
    right = WEIGHT * EXPERTS * (share * summed).sum() / tokens
    names = {"the loss of the whole batch instead of this rank's part": whole.detach()}
    if len(own):
        own_mean = right * tokens / len(own)
        names = {
            "the loss of the whole batch instead of this rank's part": whole.detach(),
            "this rank's own mean chance, not its part of the batch's": own_mean,
            "this rank's own mean chance, divided by the ranks: as if all had "
            "equally many tokens": own_mean / world_size,
            "a division by the number of choices, not of tokens": right / CHOSEN,
            "this rank's part divided by the ranks: the parts are added up": right
            / world_size,
            "without the factor E": right / EXPERTS,
            "without the weight": right / WEIGHT,
            "the load itself, not its share of all choices": right * load.sum(),
            "shares of the tokens, not of the choices": right * CHOSEN,
        }
    expect.close(found, right, "the part of the loss", mistaken=names)
    expect.that(
        found.requires_grad, "no gradient passes from the loss through the chances"
    )
    found.backward()
    expect.gradient(own, leaves[rank].grad, "the chances")


@pytest.mark.ranks(3)
def test_the_bias_moves_against_the_load(exercise, rank, seed):
    """Busy experts lose a step of bias, idle ones gain it, others keep it."""
    start = torch.tensor([0.5, -0.25, 0.0, 0.125, 0.0], dtype=torch.float64)
    bias = start.clone()
    # the last one's mean, 2.8, is no whole number
    loads = [[9.0, 0, 3, 1, 2], [4.0, 4, 1, 0, 6], [3.0, 3, 3, 3, 3], [2.0, 4, 3, 3, 2]]
    for number, load in enumerate(map(torch.tensor, loads)):
        load = load.double()
        before = bias.clone()
        given = load.clone()
        exercise.shift_bias(bias, given, STEP)
        expect.unchanged(given, load, "the load that shift_bias was given, afterwards")
        away = load.mean() - load
        right = before + STEP * away.sign()
        up_or_down = torch.where(away > 0, STEP, -STEP)
        down_or_up = torch.where(away < 0, -STEP, STEP)
        names = {
            "the bias as it was": before,
            "compared with the mean load rounded down": (
                before + STEP * (load.mean().floor() - load).sign()
            ),
            "compared with the mean load as a whole number": (
                before + STEP * (load.mean().round() - load).sign()
            ),
            "compared with the median, not with the mean": (
                before + STEP * (load.median() - load).sign()
            ),
            "the other way round, busy experts raised": before - STEP * away.sign(),
            "a shift in proportion to the load": before + STEP * away,
            "a shift in proportion to the share of the load": (
                before + STEP * away / load.sum()
            ),
            "a shift in proportion to how far the load is from the mean": (
                before + STEP * away / load.mean()
            ),
            "lowered for an expert with exactly the mean load: it keeps its bias": (
                before + up_or_down
            ),
            "raised for an expert with exactly the mean load: it keeps its bias": (
                before + down_or_up
            ),
            "only the step, without the bias before it": STEP * away.sign(),
        }
        what = f"the bias after step {number + 1}"
        expect.close(bias, right, what, mistaken=names)
