"""Checks of exercises/22_capacity.py: against one process with all tokens."""

import math

import pytest
import torch

from workshop.grader import expect

expect.nothing_is_averaged()

UNEQUAL = [5, 0, 8, 3]  # tokens of each rank


def choices(seed, tokens, experts, k):
    """[tokens, k] different experts for each token; the first ones are popular."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(tokens, experts, generator=generator)
    scores[:, 0] += 0.5
    return scores.argsort(dim=1, descending=True)[:, :k]


def kept_in_turn(turns, capacity):
    """Which (token, choice) are kept if they are served as ``turns`` lists them."""
    taken: dict[int, int] = {}
    kept = set()
    for token, choice, expert in turns:
        taken[expert] = taken.get(expert, 0) + 1
        if taken[expert] <= capacity:
            kept.add((token, choice))
    return kept


def as_mask(kept, chosen):
    mask = torch.zeros(chosen.shape, dtype=torch.bool)
    for token, choice in kept:
        mask[token, choice] = True
    return mask


def by_choice(chosen):
    """First choices of all tokens, then second ones, and so on."""
    columns = enumerate(chosen.T.tolist())
    return [(t, c, e) for c, column in columns for t, e in enumerate(column)]


def by_token(chosen):
    """All choices of the first token, then those of the second."""
    return [
        (t, c, e) for t, row in enumerate(chosen.tolist()) for c, e in enumerate(row)
    ]


def of_all(chosen, capacity, order=by_choice):
    return as_mask(kept_in_turn(order(chosen), capacity), chosen)


def own_rows(rank, counts):
    return slice(sum(counts[:rank]), sum(counts[: rank + 1]))


def ranks_one_after_the_other(chosen, counts, capacity):
    """All choices of rank 0's tokens first, then those of rank 1."""
    turns = []
    for rank in range(len(counts)):
        own = own_rows(rank, counts)
        turns += [(own.start + t, c, e) for t, c, e in by_choice(chosen[own])]
    return as_mask(kept_in_turn(turns, capacity), chosen)


def mistaken(chosen, counts, rank, capacity):
    """Wrong sets of kept choices of this rank, by their names."""
    own = own_rows(rank, counts)
    return {
        "as if this rank's tokens were the only ones": of_all(chosen[own], capacity),
        "as if all choices of a token went before those of the next": of_all(
            chosen, capacity, by_token
        )[own],
        "as if all choices of a rank went before those of the next": (
            ranks_one_after_the_other(chosen, counts, capacity)[own]
        ),
        "one choice too many for each expert": of_all(chosen, capacity + 1)[own],
        "one choice too few for each expert": of_all(chosen, capacity - 1)[own],
    }


def compare(exercise, rank, counts, chosen, experts, capacity):
    own = own_rows(rank, counts)
    given = chosen[own].clone()
    found = exercise.within_capacity(given, experts, capacity)
    right = of_all(chosen, capacity)[own]
    what = f"what is kept of {len(given)} tokens with k = {chosen.shape[1]}"
    is_tensor = torch.is_tensor(found)
    expect.that(is_tensor, f"{what} is a {type(found).__name__}, not a tensor")
    if found.shape == right.shape and not torch.equal(found, right):
        wrong = mistaken(chosen, counts, rank, capacity)
        names = [name for name, kept in wrong.items() if torch.equal(found, kept)]
        expect.that(not names, f"{what} is {', or '.join(names)}")
    expect.equal(found, right, what)
    expect.unchanged(given, chosen[own], "the choices that were given, afterwards")


@pytest.mark.ranks(3, 4)
def test_capacity_is_that_of_all_tokens(exercise, rank, world_size):
    """capacity_of_batch: from the tokens of all ranks, rounded up."""
    counts = UNEQUAL[:world_size]
    for k, experts, factor in ((1, 4, 1.0), (2, 7, 1.25), (3, 5, 0.5)):
        chosen = torch.zeros(counts[rank], k, dtype=torch.int64)
        found = exercise.capacity_of_batch(chosen, experts, factor)
        share = factor * k * sum(counts) / experts
        own = math.ceil(factor * k * counts[rank] / experts)
        what = f"the capacity for k = {k}, {experts} experts, factor {factor}"
        right = math.ceil(share)
        of_ranks = [math.ceil(factor * k * n / experts) for n in counts]
        names = {
            "that of this rank's tokens alone": own,
            "rounded down": math.floor(share),
            "one more than a share that is whole already": math.floor(share) + 1,
            "the sum of what each rank rounds up: round once": sum(of_ranks),
            "as if all ranks had as many tokens as this one": math.ceil(
                factor * k * counts[rank] * world_size / experts
            ),
            "that of one choice for each token: each has k": math.ceil(share / k),
        }
        if found != right:
            for words, other in names.items():
                expect.that(found != other, f"{what} is {words}")
        expect.number(found, right, what)


@pytest.mark.ranks(3, 4)
def test_first_choices(exercise, rank, world_size, seed):
    """within_capacity with one expert per token: lower ranks go first."""
    counts = [3, 5, 4, 2][:world_size]
    chosen = choices(seed, sum(counts), 4, 1)
    for capacity in (1, 3, 5):
        compare(exercise, rank, counts, chosen, 4, capacity)


@pytest.mark.ranks(3, 4)
def test_second_choices_go_last(exercise, rank, world_size, seed):
    """within_capacity with several experts per token: first choices of all ranks."""
    counts = [3, 5, 4, 2][:world_size]
    for k in (2, 3):
        chosen = choices(seed, sum(counts), 6, k)
        for capacity in (2, 4, 7):
            compare(exercise, rank, counts, chosen, 6, capacity)


@pytest.mark.ranks(3, 4)
def test_a_rank_without_tokens(exercise, rank, world_size, seed):
    """Rank 1 has no token: it takes part in every call, and the others see it."""
    counts = UNEQUAL[:world_size]
    chosen = choices(seed, sum(counts), 5, 2)
    compare(exercise, rank, counts, chosen, 5, 4)


@pytest.mark.ranks(4)
def test_only_counts_are_sent(exercise, rank, world_size, seed, ledger):
    """Counts say enough: the tokens' choices need not be sent."""
    counts = [300] * world_size
    chosen = choices(seed, sum(counts), 6, 2)
    ledger.clear()
    compare(exercise, rank, counts, chosen, 6, 300)
    limit = 8 * 2 * 6 * world_size  # [k, E] whole numbers of each rank
    most = max((row.bytes for row in ledger.rows), default=0)
    expect.right_way(
        most <= limit,
        f"a call has {most} bytes: [k, E] counts of each rank have {limit} in all",
    )
