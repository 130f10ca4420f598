"""Checks of exercises/21_zigzag.py: placements by cutting a list in another way."""

import pytest

from workshop.grader import expect, variants

expect.nothing_is_averaged()

# (ranks, tokens); one rank, odd ranks, one token per chunk, chunks of odd size
SIZES = [(4, 64), (1, 6), (2, 4), (3, 18), (5, 10), (4, 24), (7, 70), (8, 16)]


def held(
    rank,
    ranks,
    tokens,
    *,
    numbers=lambda r, c: (r, 2 * c - 1 - r),
    striped=False,
    turned=False,
):
    """What a rank holds; the keywords are what goes wrong."""
    if striped:
        return list(range(rank, tokens, ranks))
    size = tokens // (2 * ranks)
    chunks = [list(range(n * size, (n + 1) * size)) for n in range(4 * ranks)]
    first, second = (chunks[n] for n in numbers(rank, ranks))
    return first + (second[::-1] if turned else second)


MISTAKEN_PLACES = {
    "chunks were in order, 2 r and 2 r + 1": {
        "numbers": lambda r, c: (2 * r, 2 * r + 1)
    },
    "the late chunk were 2 c - r, not 2 c - 1 - r": {
        "numbers": lambda r, c: (r, 2 * c - r)
    },
    "the late chunk were c + r: the last rank still has most of the work": {
        "numbers": lambda r, c: (r, c + r)
    },
    "the late chunk came first": {"numbers": lambda r, c: (2 * c - 1 - r, r)},
    "the late chunk were held backwards": {"turned": True},
    "tokens were dealt one by one, in turn": {"striped": True},
    "ranks were counted from the other end": {
        "numbers": lambda r, c: (c - 1 - r, c + r)
    },
    "rank r had the chunks r and r + 1": {"numbers": lambda r, c: (r, r + 1)},
}


def row_of(ranks, tokens):
    return [token for rank in range(ranks) for token in held(rank, ranks, tokens)]


def index_of(ranks, tokens, *, forward=False, shift=0, by_rank=False):
    """The way back; the keywords are what goes wrong."""
    row = row_of(ranks, tokens)
    if forward:
        return row
    if by_rank:
        return [row.index(token) // (tokens // ranks) for token in range(tokens)]
    if shift:
        return list(range(tokens))
    return [row.index(token) for token in range(tokens)]


MISTAKEN_BACK = {
    "it were the row of all ranks' tokens itself: for token t you need the index at "
    "which the row has t": {"forward": True},
    "the row were in order already": {"shift": 1},
    "it were the rank that holds a token, not its index in the row": {"by_rank": True},
}


def as_list(found, what):
    expect.that(isinstance(found, list), f"{what} is {found!r}, not a list")
    whole = all(type(number) is int for number in found)
    expect.that(whole, f"{what}: positions are ints, not {found[:4]}")
    return found


@pytest.mark.ranks(1)
def test_places(exercise):
    """positions: chunk r, then 2 c - 1 - r, of any c and any T that 2 c divides."""
    cases = [(rank, c, tokens) for c, tokens in SIZES for rank in range(c)]
    found = [exercise.positions(*case) for case in cases]
    what = "positions of rank {} of {}, {} tokens"
    lists = [
        as_list(one, what.format(*case)) for one, case in zip(found, cases, strict=True)
    ]
    cause = variants.cause(lists, cases, held, MISTAKEN_PLACES, most=1)
    for positions, case in zip(lists, cases, strict=True):
        expect.equal(positions, held(*case), what.format(*case), cause=cause)


@pytest.mark.ranks(1)
def test_every_token_is_held_once(exercise):
    """Of all ranks' positions, each token is one; every rank has T / c of them."""
    for ranks, tokens in SIZES:
        mine = [exercise.positions(rank, ranks, tokens) for rank in range(ranks)]
        what = f"{tokens} tokens on {ranks} ranks"
        counts = [len(positions) for positions in mine]
        expect.equal(counts, [tokens // ranks] * ranks, f"{what}: tokens of each rank")
        row = sorted(token for positions in mine for token in positions)
        expect.equal(row, list(range(tokens)), f"{what}: all of them, sorted")


@pytest.mark.ranks(1)
def test_uneven_sequences_are_refused(exercise):
    """positions: a ValueError with both numbers if 2 c doesn't divide the tokens."""
    for ranks, tokens in ((4, 63), (3, 9), (1, 5), (4, 12), (8, 8)):
        for rank in (0, ranks - 1):
            expect.raises(
                ValueError,
                exercise.positions,
                rank,
                ranks,
                tokens,
                words=[str(2 * ranks), str(tokens)],
                what=f"{tokens} tokens on {ranks} ranks, which are {2 * ranks} chunks",
            )


@pytest.mark.ranks(1)
def test_way_back(exercise):
    """way_back: the row of all ranks' tokens, indexed with it, is the sequence."""
    found = [
        as_list(exercise.way_back(*sizes), f"way_back for {sizes[0]} ranks")
        for sizes in SIZES
    ]
    cause = variants.cause(found, SIZES, index_of, MISTAKEN_BACK, most=1)
    for back, (ranks, tokens) in zip(found, SIZES, strict=True):
        what = f"way_back for {ranks} ranks, {tokens} tokens"
        expect.equal(back, index_of(ranks, tokens), what, cause=cause)
