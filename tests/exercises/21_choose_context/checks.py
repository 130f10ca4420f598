"""Checks of exercises/21_choose_context.py: models that the learner hasn't seen."""

import numbers
from functools import cache

import pytest

from workshop.grader import expect, variants

expect.nothing_is_averaged()

GB = 10**9
METHODS = ("ulysses", "ring", "gather")
# tokens, width, heads, blocks, most_ranks, memory, flops, rate
JOBS = [
    (131_072, 4096, 32, 32, 64, 10 * GB, 10**15, 50 * GB),
    (1_048_576, 4096, 32, 32, 64, 12 * GB, 4 * 10**14, 50 * GB),
    (65_536, 2048, 3, 24, 64, 4 * GB, 10**15, 25 * GB),
    (8_192, 4096, 32, 32, 64, 80 * GB, 10**15, 50 * GB),  # one rank is enough
    (1_048_576, 4096, 32, 32, 16, 12 * GB, 10**15, 50 * GB),  # too few ranks
    (65_536, 3072, 24, 28, 64, 4 * GB, 10**15, 50 * GB),  # 8 ranks, and 8 divides 24
    (98_304, 3072, 24, 28, 64, 4 * GB, 10**15, 50 * GB),  # 3 times 2^15 tokens
    (40_000, 1024, 16, 24, 50, 1 * GB, 10**14, 10 * GB),  # T / c is just enough
    (262_144, 4096, 8, 40, 64, 8 * GB, 10**15, 10 * GB),  # more ranks than heads
    (262_144, 2048, 8, 2, 64, 2 * GB, 10**15, 10 * GB),  # gathered keys take too much
    (80_000, 1024, 25, 1, 64, 3 * GB // 10, 5 * 10**14, 50 * GB),  # 25 heads
    (64, 4, 2, 1, 8, 4_992, 10, 10),  # exactly the memory that two ranks need
    (64, 4, 2, 1, 8, 4_992, 65, 2),  # T / c = 32, and 65 / 2 operations for a byte
    (36, 4, 3, 1, 12, 1_500, GB, 1),  # 4 divides 36, and 8 doesn't
    (64, 4, 1, 10, 8, 6_600, 10**9, 1),  # a single head
]
# (job, ranks) of the formulas
CASES = [(job, ranks) for job in JOBS for ranks in (1, 2, 4, 8, 16)]


def words_of(job, ranks=None):
    tokens, width, heads, blocks = job[:4]
    said = f"{tokens:,} tokens, width {width}, heads: {heads}, blocks: {blocks}"
    if ranks is None:
        return said
    return f"{said}, {ranks} rank{'s' * (ranks > 1)}"


def allowed(job, method, ranks):
    tokens, heads = job[0], job[2]
    return tokens % (2 * ranks) == 0 and (method != "ulysses" or heads % ranks == 0)


def broken_rule(job, method, ranks):
    """What forbids a choice, as words; "" if nothing does."""
    tokens, heads, most, memory = job[0], job[2], job[4], job[5]
    if method not in METHODS:
        return f"{method!r} is none of the methods"
    if not 1 <= ranks <= most:
        return f"there are 1 to {most} ranks"
    if tokens % (2 * ranks):
        return f"2 c = {2 * ranks} must divide the {tokens:,} tokens"
    if method == "ulysses" and heads % ranks:
        return f"with Ulysses, c = {ranks} must divide the {heads} heads"
    needed = kept(job, method, ranks)
    return f"it needs {needed:,} of {memory:,} bytes" if needed > memory else ""


def sent(
    job,
    method,
    ranks,
    *,
    size=2,
    both=1,
    factors=(6, 4),
    alone=0,
    whole=False,
    undivided=False,
    gathered=4,
    exchanged=8,
    whole_times=False,
):
    """Bytes sent for a block; the keywords are what goes wrong."""
    keys = size * job[1] * job[0] // (1 if whole else ranks)
    if ranks == 1:
        return 2 * alone * keys
    if method == "ring":
        return (factors[0] * ranks - factors[1]) * keys // both
    if method == "gather":
        return gathered * (ranks - 1) * keys // both
    if whole_times:
        return exchanged * (ranks - 1) // ranks * keys
    return exchanged * (ranks - 1) * keys // (1 if undivided else ranks) // both


MISTAKEN_SENT = {
    "a number had 4 bytes": {"size": 4},
    "a number had 1 byte": {"size": 1},
    "backward sent nothing, and forward half of all": {"both": 2},
    "S were the keys of all ranks, not of one": {"whole": True},
    "Ulysses sent 8 (c - 1) S, not divided by c": {"undivided": True},
    "Ulysses sent 4 (c - 1) / c S, in one direction only": {"exchanged": 4},
    "8 (c - 1) / c were rounded down before it was multiplied": {"whole_times": True},
    "keys and values were gathered in one direction only": {"gathered": 2},
    "a ring sent 6 c S: 4 S more than it does": {"factors": (6, 0)},
    "a ring sent (6 c - 6) S: gradients go round c times, not c - 1": {
        "factors": (6, 6)
    },
    "a ring sent 2 (c - 1) S, as in forward alone": {"factors": (2, 2)},
    "a ring sent 4 (c - 1) S, as gathered keys do": {"factors": (4, 4)},
    "a ring of one rank sent 2 S": {"alone": 1},
}


def kept(
    job,
    method,
    ranks,
    *,
    size=2,
    block=(17, 14, 2),
    per_head=1,
    four=4,
    inputs=1,
    every_block=False,
    whole_inputs=False,
    narrow_inputs=False,
    shared=False,
):
    """Bytes kept; the keywords are what goes wrong."""
    tokens, width, heads, blocks = job[:4]
    own = tokens // ranks
    gathers = method == "gather"
    factor = block[1] if gathers else block[0]
    one = (factor * width + per_head * heads + four) * own
    if gathers:
        one += block[2] * width * (own if shared else tokens)
    held = inputs * blocks * width * (tokens if whole_inputs else own)
    if narrow_inputs:
        held = blocks * own
    return size * (held + one * (blocks if every_block else 1))


MISTAKEN_KEPT = {
    "a number had 4 bytes": {"size": 4},
    "a number had 1 byte": {"size": 1},
    "the inputs of all blocks were left out": {"inputs": 0},
    "the inputs were one number for each token, not H": {"narrow_inputs": True},
    "every block were kept whole, not one": {"every_block": True},
    "the inputs were those of all T tokens": {"whole_inputs": True},
    "the a of a block were left out": {"per_head": 0},
    "the 4 of a block were left out": {"four": 0},
    "the gathered keys and values were only those of own tokens": {"shared": True},
    "gathered keys and values took nothing": {"block": (17, 14, 0)},
    "only keys were gathered, not values": {"block": (17, 14, 1)},
    "own tokens took 17 H with gathered keys and values, too": {"block": (17, 17, 2)},
    "all methods took 14 H for own tokens": {"block": (14, 14, 2)},
}


def waits_for(job, method, ranks, hides, less, floor):
    tokens, flops, rate = job[0], job[6], job[7]
    if floor:
        flops = flops // rate * rate
    needed = flops * ranks
    if hides == "whole":
        needed = flops
    enough = tokens * rate > needed if less else tokens * rate >= needed
    if method == "ring" and (
        hides == "always" or (hides in ("rule", "whole") and enough)
    ):
        return 0
    return sent(job, method, ranks)


ORDERS = {  # which fields of what fits decide, one after the other; -1: the largest
    "bytes": ((0, 1), (1, 1), (3, 1)),
    "memory": ((0, 1), (2, 1), (3, 1)),
    "order": ((0, 1), (3, 1)),
    "all ranks": ((1, 1), (0, 1), (3, 1)),
    "most ranks": ((0, -1), (1, 1), (3, 1)),
}


@cache
def best(
    job,
    *,
    hides="rule",
    less=False,
    floor=False,
    strict=False,
    heads=True,
    tokens=2,
    most=0,
    doubled=False,
    by="bytes",
    order=METHODS,
):
    """The choice, or None; the keywords are what goes wrong."""
    fitting = []
    for ranks in range(1, job[4] + 1 - most):
        for place, method in enumerate(order):
            even = job[0] % (tokens * ranks) == 0
            shares = not heads or method != "ulysses" or job[2] % ranks == 0
            needed = kept(job, method, ranks)
            fits = needed < job[5] if strict else needed <= job[5]
            tried = not doubled or ranks & (ranks - 1) == 0
            if even and shares and fits and tried:
                waits = waits_for(job, method, ranks, hides, less, floor)
                fitting.append((ranks, waits, needed, place, method))
    if not fitting:
        return None
    fields = ORDERS[by]
    ranks, *_, method = min(
        fitting, key=lambda one: [sign * one[field] for field, sign in fields]
    )
    return method, ranks


MISTAKEN_CHOICES = {
    "a ring's messages were never hidden": {"hides": "never"},
    "a ring's messages were always hidden": {"hides": "always"},
    "T, not T / c, had to be at least the operations for a byte": {"hides": "whole"},
    "T / c had to be more than operations per byte, where equal is enough": {
        "less": True
    },
    "operations per byte were rounded down": {"floor": True},
    "a method that needs exactly the memory didn't fit": {"strict": True},
    "the heads didn't matter to Ulysses": {"heads": False},
    "c had to divide T, not 2 c": {"tokens": 1},
    "most_ranks itself weren't allowed": {"most": 1},
    "only powers of two were tried": {"doubled": True},
    "the least memory were wanted, not the fewest bytes": {"by": "memory"},
    "the first method that fits were taken, whatever it sends": {"by": "order"},
    "the fewest bytes were wanted first, on any number of ranks": {"by": "all ranks"},
    "the most ranks were wanted": {"by": "most ranks"},
    "of equal ones, the last of METHODS were taken": {"order": METHODS[::-1]},
}


def check_numbers(found, cases, function, mistakes, what):
    """Name the mistake that explains all values, or else those of one method."""
    cause = variants.cause(found, cases, function, mistakes)
    for method in METHODS:
        if cause:
            break
        mine = [n for n, case in enumerate(cases) if case[1] == method]
        of_method = [found[n] for n in mine]
        some = [cases[n] for n in mine]
        if of_method != [function(*case) for case in some]:
            cause = variants.cause(of_method, some, function, mistakes)
            break
    for number, (job, method, ranks) in zip(found, cases, strict=True):
        label = f"bytes {what} with {method}, {words_of(job, ranks)}"
        whole = isinstance(number, int) and not isinstance(number, bool)
        expect.that(whole, f"{label}: {number!r} is not a whole number")
        expect.equal(number, function(job, method, ranks), label, cause=cause)


def legal_cases():
    return [
        (job, method, ranks)
        for job, ranks in CASES
        for method in METHODS
        if allowed(job, method, ranks)
    ]


@pytest.mark.ranks(1)
def test_bytes_sent(exercise):
    """sent_bytes: by each method, for one block; one rank sends nothing."""
    cases = legal_cases()
    found = [exercise.sent_bytes(exercise.Job(*job), m, c) for job, m, c in cases]
    check_numbers(found, cases, sent, MISTAKEN_SENT, "sent")


@pytest.mark.ranks(1)
def test_bytes_kept(exercise):
    """kept_bytes: the inputs of all blocks, and one block, on a rank."""
    cases = legal_cases()
    found = [exercise.kept_bytes(exercise.Job(*job), m, c) for job, m, c in cases]
    check_numbers(found, cases, kept, MISTAKEN_KEPT, "kept")


@pytest.mark.ranks(1)
def test_choice(exercise):
    """choose: the fewest ranks that fit, and there the fewest bytes to wait for."""
    found = [exercise.choose(exercise.Job(*job)) for job in JOBS]
    plain = [None if one is None else tuple(one) for one in found]
    cases = [(job,) for job in JOBS]
    cause = variants.cause(plain, cases, best, MISTAKEN_CHOICES, most=1)
    for choice, job in zip(found, JOBS, strict=True):
        what, wanted = f"choice for {words_of(job)}", best(job)
        if wanted is None:
            nothing = f"{what} is {choice}, but no method fits"
            expect.that(choice is None, nothing, cause=cause)
            continue
        none = f"{what} is None, expected {wanted}"
        expect.that(choice is not None, none, cause=cause)
        is_choice = isinstance(choice, exercise.Choice)
        kind = type(choice).__name__
        expect.that(is_choice, f"{what} is {choice!r}, a {kind}, not a Choice")
        whole = isinstance(choice.ranks, numbers.Integral)
        expect.that(whole, f"{what}: {choice.ranks!r} is not a whole number of ranks")
        mine = tuple(choice)
        broken = broken_rule(job, *mine)
        against = f"{what} is {mine}, which breaks a rule: {broken}"
        expect.that(not broken, against, cause=cause)
        other = f"{what} is {mine}, expected {wanted}"
        expect.that(mine == wanted, other, cause=cause)
