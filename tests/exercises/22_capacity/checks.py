"""Checks of exercises/22_capacity.py: against one process with all tokens."""

import math

import pytest
import torch

from workshop.grader import expect

expect.nothing_is_averaged()

UNEQUAL = [5, 0, 8, 3]  # tokens of each rank
# what several mistakes lead to on rank 0, whose choices no lower rank goes before
FIRST_RANK = "as if first choices on other ranks didn't go before second ones here"
MOST_NAMES = 2  # of mistakes that explain the same values; more explain nothing


def choices(seed, tokens, experts, k):
    """[tokens, k] different experts for each token; the first ones are popular."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(tokens, experts, generator=generator)
    scores[:, 0] += 0.5
    return scores.argsort(dim=1, descending=True)[:, :k]


def of_all(chosen, capacity):
    """What one process keeps: first choices of all tokens, then second ones ..."""
    taken: dict[int, int] = {}
    kept = torch.zeros(chosen.shape, dtype=torch.bool)
    for choice, column in enumerate(chosen.T.tolist()):
        for token, expert in enumerate(column):
            kept[token, choice] = taken.get(expert, 0) < capacity
            taken[expert] = taken.get(expert, 0) + 1
    return kept


def own_rows(rank, counts):
    return slice(sum(counts[:rank]), sum(counts[: rank + 1]))


# Which other choice of the same expert goes before an own one, if something goes wrong.
# Each is (rank, token, choice).
def within_the_rank(other, own):
    (r, t, c), (own_r, own_t, own_c) = other, own
    return r == own_r and (c, t) < (own_c, own_t)


def token_by_token(other, own):
    return other < own


def rank_by_rank(other, own):
    (r, t, c), (own_r, own_t, own_c) = other, own
    return (r, c, t) < (own_r, own_c, own_t)


def without_earlier_choices_of_others(other, own):
    (r, _, c), (own_r, _, own_c) = other, own
    return within_the_rank(other, own) or (c == own_c and r < own_r)


def without_lower_ranks(other, own):
    return within_the_rank(other, own) or other[2] < own[2]


def in_the_right_order(other, own):
    (r, t, c), (own_r, own_t, own_c) = other, own
    return (c, r, t) < (own_c, own_r, own_t)


def higher_ranks_first(other, own):
    (r, t, c), (own_r, own_t, own_c) = other, own
    return (c, -r, t) < (own_c, -own_r, own_t)


def each_choice_for_itself(other, own):
    (r, t, c), (own_r, own_t, own_c) = other, own
    return c == own_c and (r, t) < (own_r, own_t)


def without_earlier_choices_of_higher_ranks(other, own):
    return other[0] <= own[0] and in_the_right_order(other, own)


def without_own_tokens(other, own):
    (r, _, c), (own_r, _, own_c) = other, own
    return (c, r) < (own_c, own_r)


def last_choices_first(other, own):
    (r, t, c), (own_r, own_t, own_c) = other, own
    return (-c, r, t) < (-own_c, own_r, own_t)


def wrong_rules(capacity, ranks):
    """For the words of a mistake: (what goes before an own choice, the capacity)."""
    return {
        "as if this rank's tokens were the only ones": (within_the_rank, capacity),
        "as if each rank had 1/N of the capacity for its own tokens": (
            within_the_rank,
            capacity // ranks,
        ),
        "as if all choices of a token went before those of the next": (
            token_by_token,
            capacity,
        ),
        "as if all choices of a rank went before those of the next": (
            rank_by_rank,
            capacity,
        ),
        FIRST_RANK: (
            without_earlier_choices_of_others,
            capacity,
        ),
        "as if first choices, on any rank, didn't go before second ones": (
            each_choice_for_itself,
            capacity,
        ),
        "as if first choices on higher ranks didn't go before second ones here": (
            without_earlier_choices_of_higher_ranks,
            capacity,
        ),
        "as if a token's choice didn't go before that of a later token on its rank": (
            without_own_tokens,
            capacity,
        ),
        "as if the last choices went first": (last_choices_first, capacity),
        "as if lower ranks didn't go first": (without_lower_ranks, capacity),
        "as if higher ranks went first": (higher_ranks_first, capacity),
        "one choice too many for each expert": (in_the_right_order, capacity + 1),
        "one choice too few for each expert": (in_the_right_order, capacity - 1),
    }


def kept_by(goes_before, chosen, counts, rank, capacity):
    """[n, k]: which choices of this rank are kept, counted choice by choice."""
    every = []
    for other in range(len(counts)):
        rows = enumerate(chosen[own_rows(other, counts)].tolist())
        every += [((other, t, c), e) for t, row in rows for c, e in enumerate(row)]
    kept = torch.zeros(counts[rank], chosen.shape[1], dtype=torch.bool)
    for own, expert in every:
        if own[0] == rank:
            before = [e == expert and goes_before(other, own) for other, e in every]
            kept[own[1], own[2]] = sum(before) < capacity
    return kept


def mistaken(chosen, counts, rank, capacity):
    """Wrong sets of kept choices of this rank, by their names."""
    rules = wrong_rules(capacity, len(counts))
    return {
        name: kept_by(goes_before, chosen, counts, rank, of)
        for name, (goes_before, of) in rules.items()
    }


def names_of_all(found, wrong, of_many=""):
    """The names under which ``wrong`` has all values that were found on this rank.

    Args:
        found: this rank's values, one for each case.
        wrong: for each case, wrong values by their names.
        of_many: the name that says what many have in common, if it is among them.
    """
    names = list(wrong[0])
    for value, by_name in zip(found, wrong, strict=True):
        names = [name for name in names if same(value, by_name[name])]
    if len(names) > MOST_NAMES:
        return [name for name in names if name == of_many]
    return names


def same(value, other):
    if torch.is_tensor(value) and torch.is_tensor(other):
        return torch.equal(value, other)
    return type(value) is type(other) and value == other


def compare(exercise, rank, counts, cases, experts, explained=True):
    """``cases``: (the choices of all ranks, the capacity)."""
    own = own_rows(rank, counts)
    given = [chosen[own].clone() for chosen, _ in cases]
    found = [
        exercise.within_capacity(mine, experts, capacity)
        for mine, (_, capacity) in zip(given, cases, strict=True)
    ]
    names = []
    if explained:
        wrong = [mistaken(chosen, counts, rank, capacity) for chosen, capacity in cases]
        names = names_of_all(found, wrong, FIRST_RANK if rank == 0 else "")
    for mine, kept, (chosen, capacity) in zip(given, found, cases, strict=True):
        right = of_all(chosen, capacity)[own]
        what = f"what is kept of {len(mine)} tokens with k = {chosen.shape[1]}"
        is_tensor = torch.is_tensor(kept)
        expect.that(is_tensor, f"{what} is a {type(kept).__name__}, not a tensor")
        if names and not torch.equal(kept, right):
            expect.that(False, f"{what} is {', or '.join(names)}")
        expect.equal(kept, right, what)
        expect.unchanged(mine, chosen[own], "the choices that were given, afterwards")


@pytest.mark.ranks(3, 4)
def test_capacity_is_that_of_all_tokens(exercise, rank, world_size):
    """capacity_of_batch: from the tokens of all ranks, rounded up."""
    counts = UNEQUAL[:world_size]
    cases = (1, 4, 1.0), (2, 7, 1.25), (3, 5, 0.5)
    found, wrong = [], []
    for k, experts, factor in cases:
        chosen = torch.zeros(counts[rank], k, dtype=torch.int64)
        found.append(exercise.capacity_of_batch(chosen, experts, factor))
        wrong.append(wrong_capacities(counts, rank, k, experts, factor))
    names = names_of_all(found, wrong)
    for capacity, (k, experts, factor) in zip(found, cases, strict=True):
        what = f"the capacity for k = {k}, {experts} experts, factor {factor}"
        right = math.ceil(factor * k * sum(counts) / experts)
        if names and capacity != right:
            expect.that(False, f"{what} is {', or '.join(names)}")
        expect.number(capacity, right, what)


def wrong_capacities(counts, rank, k, experts, factor):
    """Wrong capacities on this rank, by their names."""
    share = factor * k * sum(counts) / experts
    own = factor * k * counts[rank] / experts
    of_ranks = [math.ceil(factor * k * n / experts) for n in counts]
    return {
        "that of this rank's tokens alone": math.ceil(own),
        "rounded down": math.floor(share),
        "one more than a share that is whole already": math.floor(share) + 1,
        "the sum of what each rank rounds up: round once": sum(of_ranks),
        "as if all ranks had as many tokens as this one": math.ceil(own * len(counts)),
        "that of one choice for each token: each has k": math.ceil(share / k),
    }


@pytest.mark.ranks(3, 4)
def test_first_choices(exercise, rank, world_size, seed):
    """within_capacity with one expert per token: lower ranks go first."""
    counts = [5, 8, 6, 3][:world_size]
    chosen = choices(seed, sum(counts), 4, 1)
    compare(exercise, rank, counts, [(chosen, capacity) for capacity in (2, 4, 7)], 4)


@pytest.mark.ranks(3, 4)
def test_second_choices_go_last(exercise, rank, world_size, seed):
    """within_capacity with several experts per token: first choices of all ranks."""
    counts = [5, 8, 6, 3][:world_size]
    of_k = [choices(seed, sum(counts), 6, k) for k in (2, 3)]
    cases = [(chosen, capacity) for chosen in of_k for capacity in (1, 2, 3, 6, 9)]
    compare(exercise, rank, counts, cases, 6)


@pytest.mark.ranks(3, 4)
def test_a_rank_without_tokens(exercise, rank, world_size, seed):
    """Rank 1 has no tokens, but makes every call, so that no rank waits for it."""
    counts = UNEQUAL[:world_size]
    chosen = choices(seed, sum(counts), 5, 2)
    compare(exercise, rank, counts, [(chosen, 4)], 5)


@pytest.mark.ranks(4)
def test_only_counts_are_sent(exercise, rank, world_size, seed, ledger):
    """Counts say enough: the tokens' choices need not be sent."""
    counts = [300] * world_size
    chosen = choices(seed, sum(counts), 6, 2)
    ledger.clear()
    compare(exercise, rank, counts, [(chosen, 300)], 6, explained=False)
    limit = 8 * 2 * 6 * world_size  # [k, E] whole numbers of each rank
    most = max((row.bytes for row in ledger.rows), default=0)
    expect.right_way(
        most <= limit,
        f"one collective has {most} bytes, expected at most {limit}: each rank sends "
        "[k, E] counts, not its choices",
    )
