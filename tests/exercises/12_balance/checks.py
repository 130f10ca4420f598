"""Checks of exercises/12_balance.py."""

import itertools
import numbers
import random

import pytest

from workshop.grader import expect, variants


def cost_of(costs, sizes, *, over=max, of_part=sum, moves_on=True):
    """The largest cost of a device; the keywords are what goes wrong."""
    begin, parts = 0, []
    for size in sizes:
        parts.append(of_part(costs[begin : begin + size]))
        begin += size * moves_on
    return over(parts)


MISTAKEN_COSTS = {
    "the costs of all devices were added up": {"over": sum},
    "the cheapest device were wanted, not the slowest": {"over": min},
    "the first device were the slowest": {"over": lambda parts: parts[0]},
    "the last device were the slowest": {"over": lambda parts: parts[-1]},
    "the mean of the devices were wanted, not the largest": {
        "over": lambda parts: sum(parts) / len(parts)
    },
    "a device cost as much as its most expensive layer": {"of_part": max},
    "the cost of a device were its number of layers": {"of_part": len},
    "a device cost the mean of its layers": {
        "of_part": lambda costs: sum(costs) / len(costs)
    },
    "each device began at layer 0": {"moves_on": False},
}


def every_split(layers, devices):
    for cuts in itertools.combinations(range(1, layers), devices - 1):
        places = [0, *cuts, layers]
        yield [b - a for a, b in itertools.pairwise(places)]


def fits(sizes, costs, devices):
    """Say what is wrong with the form of an answer."""
    expect.that(
        all(isinstance(size, numbers.Integral) for size in sizes),
        f"sizes are whole numbers, these are {sizes}",
    )
    expect.equal(len(sizes), devices, f"the number of sizes for {devices} devices")
    expect.that(min(sizes) >= 1, f"a device got no layer: {sizes}")
    expect.equal(sum(sizes), len(costs), f"the layers of {sizes} together")


def check(exercise, costs, devices, best):
    given = list(costs)
    sizes = exercise.split(given, devices)
    expect.that(sizes is not None, "split returns None: is a `return` missing?")
    expect.equal(given, costs, "the costs that split was given, afterwards")
    sizes = list(sizes)
    fits(sizes, costs, devices)
    expect.equal(
        cost_of(costs, sizes), best, f"the cost of the slowest, {costs} as {sizes}"
    )


@pytest.mark.ranks(1)
def test_slowest(exercise, seed):
    """The slowest device is the one whose layers cost most together."""
    costs = [3, 1, 1, 1, 4, 2]
    cases = [(costs, [3, 1, 2]), (costs, [1, 4, 1]), ([2.5], [1])]
    draw = random.Random(seed)
    for _ in range(20):
        drawn = [draw.randint(0, 36) / 4 for _ in range(7)]
        cases.append((drawn, draw.choice(list(every_split(7, 3)))))
    cause = variants.cause_in(exercise.slowest, cases, cost_of, MISTAKEN_COSTS)
    for sizes, right in (([3, 1, 2], 6), ([1, 4, 1], 7)):
        found = exercise.slowest([*costs], sizes)
        expect.equal(found, right, f"the cost of {sizes}", cause=cause)
    found = exercise.slowest([2.5], [1])
    expect.equal(found, 2.5, "the cost of one layer", cause=cause)
    for costs, sizes in cases[3:]:
        given = list(costs), list(sizes)
        found = exercise.slowest(*given)
        what = f"the cost of {costs} as {sizes}"
        expect.equal(found, cost_of(costs, sizes), what, cause=cause)
        expect.equal(given, (costs, sizes), "what slowest was given, afterwards")


@pytest.mark.ranks(1)
def test_sizes_that_do_not_fit(exercise):
    """Sizes that leave layers out, or a device without one, are refused by name."""
    for sizes in ([2, 2], [4, 2], [5, 0], [6, -1], []):
        what = f"slowest of 5 layers with sizes {sizes}"
        words = list(map(str, sizes))
        expect.raises(
            ValueError, exercise.slowest, [1] * 5, sizes, words=words, what=what
        )


@pytest.mark.ranks(1)
def test_the_two_examples(exercise):
    """The examples of the file: in both, the largest cost is 5."""
    check(exercise, [3, 1, 1, 1, 4, 2], 3, 5)
    check(exercise, [1, 1, 1, 5], 2, 5)


@pytest.mark.ranks(1)
def test_no_split_is_better(exercise, seed):
    """No other split has a smaller largest cost, whatever the costs are."""
    draw = random.Random(seed)
    for layers in range(1, 9):
        for devices in range(1, layers + 1):
            # wholes, quarters, and microseconds in seconds
            for most, parts in ((0, 1), (1, 1), (20, 1), (12, 4), (20, 2**20)):
                costs = [draw.randint(0, most) / parts for _ in range(layers)]
                costs[draw.randrange(layers)] += draw.choice([0, 25]) / parts
                splits = every_split(layers, devices)
                check(exercise, costs, devices, min(cost_of(costs, s) for s in splits))
    check(exercise, [500, 497, 1, 500], 2, 997)  # not 998, which is nearly as good


@pytest.mark.ranks(1)
def test_what_cannot_be_split(exercise):
    """More devices than layers, or no device, is a ValueError."""
    for layers, devices in ((3, 4), (3, 0), (1, 2), (3, -1), (0, 1)):
        what = f"{layers} layers among {devices} devices"
        expect.raises(ValueError, exercise.split, [1] * layers, devices, what=what)


@pytest.mark.ranks(1)
def test_many_layers(exercise, seed):
    """60 layers among 8 devices take a moment, not years."""
    draw = random.Random(seed)
    part = [draw.randint(1, 30) for _ in range(7)]
    costs = []
    for _ in range(8):  # eight parts of one cost: no better split can exist
        part = draw.sample(part, len(part))
        costs += part
    costs += [0] * 4
    check(exercise, costs, 8, sum(part))
