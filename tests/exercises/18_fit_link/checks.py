"""Checks of exercises/18_fit_link.py: messages over links that the check chooses."""

import numbers
import random
import statistics

import pytest
import torch.distributed as dist

from workshop.grader import clocks, expect

expect.nothing_is_averaged()

SIZES = [4, 256, 4096, 65536, 1 << 20, 1 << 22]
LINKS = [(2e-5, 1 / 12e9), (3e-4, 1 / 1.1e9), (1.5e-6, 1 / 300e9)]  # (alpha, beta)
SLOWER = 1.25, 1.0, 2.5, 1.1  # how much longer than undisturbed messages take, in turn
FIRST = 7e-3  # seconds more for the first message of a size
MEDIANS = statistics.median, statistics.median_high, statistics.median_low
CLOCK_TICK = 2e-9  # seconds: a clock may count nanoseconds
OFFSETS = 5e-3, 5e-3 + 0.25, 91.0, 17.0  # what the ranks' clocks show at the beginning


def is_near(found, expected, tolerance=1e-8):
    return abs(found - expected) <= tolerance * abs(expected)


def over(exercise, rank, alpha, beta, slower=SLOWER):
    """The clock of this rank; its link has these two numbers."""
    link = clocks.Link(alpha, beta, first=FIRST, slower=slower)
    return clocks.simulated(exercise, link, OFFSETS[rank])


def mistaken_seconds(alpha, beta, size, repeats, slower):
    """What other ways to measure give: sums of the seconds of messages, one by one."""
    one = alpha + beta * size
    first = 2 * (one + FIRST)
    there = [one * slower[k % len(slower)] for k in range(repeats)]
    trips = [seconds + one for seconds in there]
    every = [first, *trips]
    wide = alpha + beta * 4 * size
    apart = OFFSETS[1] - OFFSETS[0]
    named = {}
    if repeats == 1:  # rank 1 waits for the end of the first one, too
        words = "the time by rank 1's clock, with part of the first round trip: rank 0 "
        between = there[0] + one + FIRST
        named[f"{words}is to measure"] = [between / 2, between]
    named |= {
        "the time of a round trip: a message goes one way": [min(trips)],
        "the time of the first round trip, which doesn't count": [first / 2, first],
        "the mean of the repeats, which slow ones spoil: take the least": [
            statistics.mean(trips) / 2,
            statistics.mean(trips),
        ],
        "the median of the repeats: take the least, as nothing makes a message fast": [
            middle(trips) / share for middle in MEDIANS for share in (2, 1)
        ],
        "the largest of the repeats: take the least": [max(trips) / 2, max(trips)],
        "the mean of the repeats, with the first round trip": [
            statistics.mean(every) / 2,
            statistics.mean(every),
            statistics.mean(every[:-1]) / 2,
            statistics.mean(every[:-1]),
        ],
        "the median of the repeats, with the first round trip": [
            statistics.median(every) / 2,
            statistics.median(every),
            statistics.median(every[:-1]) / 2,
            statistics.median(every[:-1]),
        ],
        "the sum of all repeats, not the least of them": [sum(trips) / 2, sum(trips)],
        "the time until `send` returns, when no byte has arrived": [alpha, alpha / 2],
        "the time of four times as many bytes: is the message of float32?": [
            wide,
            2 * wide,
        ],
        "the time on rank 1's clock minus the one on rank 0's, and these differ": [
            one + apart,
            one + alpha + apart,
            min(there) + apart,
        ],
        "half of a message and a short answer: rank 1 sends all bytes back": [
            (min(there) + alpha + beta * short) / 2 for short in (0, 1, 4, 8)
        ],
        "the time of a rank that sends no bytes: rank 0 alone measures": [0.0],
        "the time of half a message: divide a round trip by 2 once": [one / 2],
        "microseconds": [one * 1e6],
        "milliseconds": [one * 1e3],
        "nanoseconds: `perf_counter_ns` counts these": [one * 1e9],
    }
    right = min(trips) / 2
    for words, seconds in named.items():
        for value in seconds:
            if abs(value - right) > CLOCK_TICK:
                yield words, value


def same_seconds(found, right, mistaken, what):
    is_number = isinstance(found, numbers.Real)
    expect.that(is_number, f"{what}: is {found!r}, expected a number of seconds")
    if abs(found - right) <= CLOCK_TICK:
        return expect.that(True, what)
    for words, value in mistaken:
        alike = abs(found - value) <= CLOCK_TICK or is_near(found, value, 1e-4)
        expect.that(not alike, f"{what}: is {words}")
    because = ""
    if abs(abs(found) - (OFFSETS[1] - OFFSETS[0])) < 0.1:
        because = ": the clocks of two ranks differ by more than a message takes"
    told = f"{what}: is {found:.6g} s, expected {right:.6g} s{because}"
    expect.that(False, told)


def same_on_ranks(found, what):
    """Rank 0 alone measures; each other rank must have got its number."""
    dist.barrier()  # where a rank left early, no other one takes its call for this one
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, found)
    differ = [rank for rank, value in enumerate(everyone) if value != everyone[0]]
    told = f"{what}: rank {differ and differ[0]} returns another number than rank 0: "
    expect.that(not differ, told + "send all ranks what rank 0 measured")


def sends_enough(ledger, rank, size, repeats):
    """The least of one round trip would be right here, and wrong on a real link."""
    sent = sum(row.op == "send" and row.bytes >= size for row in ledger.rows)
    if rank == 0:
        words = f"rank 0 sent {sent} messages of {size} bytes, expected {1 + repeats}"
        expect.that(sent >= repeats, f"{words}: one to warm up, and the repeats")
    if rank > 1:
        words = f"rank {rank} sends, too: only ranks 0 and 1 are to be measured"
        expect.right_way(not sent, words)


def measure(exercise, rank, ledger, link, size, repeats, slower=SLOWER):
    alpha, beta = link
    what = f"{size} bytes, {repeats} repeats, {alpha:g} s and {1e-9 / beta:g} GB/s"
    ledger.clear()
    with over(exercise, rank, alpha, beta, slower):
        found = exercise.message_seconds(size, repeats)
    sends_enough(ledger, rank, size, repeats)
    least = min(slower[k % len(slower)] for k in range(repeats))
    right = (alpha + beta * size) * (1 + least) / 2
    mistaken = list(mistaken_seconds(alpha, beta, size, repeats, slower))
    expect.that(
        found is not None, "message_seconds returned None: is a return missing?"
    )
    if rank == 0:
        same_seconds(found, right, mistaken, what)
    same_on_ranks(found, what)


@pytest.mark.ranks(2, 3, 4)
def test_seconds_of_a_message(exercise, rank, ledger):
    """Half of the least round trip, of which some were disturbed."""
    for link in LINKS[:2]:
        for size in (64, 1 << 20):
            measure(exercise, rank, ledger, link, size, 6)


@pytest.mark.ranks(3)
def test_first_round_trip_does_not_count(exercise, rank, ledger):
    """With a single repeat, it's the second round trip that counts."""
    measure(exercise, rank, ledger, LINKS[1], 4096, 1, (1.0,))


def least_squares(sizes, times, weights):
    """(alpha, beta) with the least sum of (weight x error in seconds)^2."""
    rows = [(w * w, n, t) for w, n, t in zip(weights, sizes, times, strict=True)]
    w = sum(row[0] for row in rows)
    n, t = (sum(row[0] * row[k] for row in rows) for k in (1, 2))
    beta = sum(u * (size - n / w) * (time - t / w) for u, size, time in rows)
    beta /= sum(u * (size - n / w) ** 2 for u, size, _ in rows)
    return (t - beta * n) / w, beta


def drawn(draw, alpha, beta, noise):
    """A time of each size, with noise."""
    return [
        (alpha + beta * size) * draw.uniform(1 - noise, 1 + noise) for size in SIZES
    ]


def compare(found, expected, mistaken, what, tolerance=1e-8):
    """Say which of the two is wrong, and what it looks like."""
    expect.that(
        isinstance(found, tuple | list) and len(found) == 2,
        f"fit returns {found!r}; expected (alpha, beta)",
    )
    for value in found:
        is_number = isinstance(value, numbers.Real)
        expect.that(is_number, f"fit returns {found!r}; expected two numbers")
    both = [float(value) for value in found]
    pairs = list(zip(both, expected, strict=True))
    if all(is_near(*pair, tolerance) for pair in pairs):
        return expect.that(True, what)
    for words, other in mistaken.items():
        if all(map(is_near, both, other)):
            expect.that(False, f"{what}: alpha and beta are those of {words}")
    for name, value, right in zip(("alpha", "beta"), both, expected, strict=True):
        if is_near(value, right, 5e-6):
            words = f"{name} has the first digits alone: is all of it in float64?"
        else:
            words = f"{name} is {value:.7g}, expected {right:.7g}"
        expect.that(is_near(value, right), f"{what}: {words}")


def likely_mistakes(t):
    """What other fits than the asked one give for the same times."""
    alpha, beta = expected = least_squares(SIZES, t, [1 / x for x in t])
    ends = (t[-1] - t[0]) / (SIZES[-1] - SIZES[0])
    return expected, {
        "errors in seconds, not relative ones": least_squares(SIZES, t, [1] * len(t)),
        "errors relative to the bytes": least_squares(SIZES, t, [1 / n for n in SIZES]),
        "weights of 1 / t^2, where the error itself is divided by t": least_squares(
            SIZES, t, [x**-2 for x in t]
        ),
        "relative errors without the square": least_squares(
            SIZES, t, [x**-0.5 for x in t]
        ),
        "the smallest and the largest message alone": (t[0] - ends * SIZES[0], ends),
        "alpha and bytes per second: return seconds per byte": (alpha, 1 / beta),
        "the right fit in the wrong order": (beta, alpha),
        "sizes in MB: beta is seconds per byte": (alpha, beta * 1e6),
        "sizes in MiB: beta is seconds per byte": (alpha, beta * 2**20),
        "sizes in KiB: beta is seconds per byte": (alpha, beta * 2**10),
        "sizes in bits: beta is seconds per byte": (alpha, beta / 8),
    }


@pytest.mark.ranks(1)
def test_link_without_noise(exercise, seed):
    """Exact times of a link give its alpha and beta back."""
    draw = random.Random(seed)
    for alpha, beta in LINKS:
        times = drawn(draw, alpha, beta, 0)
        _, mistaken = likely_mistakes(times)
        what = f"a link with {alpha:g} s and {1 / beta / 1e9:g} GB/s"
        sizes = SIZES[3:] + SIZES[:3]  # they may be in any order
        times = times[3:] + times[:3]
        kept, given = list(times), list(sizes)
        found = exercise.fit(sizes, times)
        expect.equal(sizes, given, "the sizes that fit was given, afterwards")
        expect.equal(times, kept, "the seconds that fit was given, afterwards")
        compare(found, (alpha, beta), mistaken, what)


@pytest.mark.ranks(1)
def test_noisy_link_has_the_least_relative_errors(exercise, seed):
    """With noise, alpha and beta minimize the squares of the relative errors."""
    draw = random.Random(seed)
    for alpha, beta in LINKS:
        times = drawn(draw, alpha, beta, 0.2)
        expected, mistaken = likely_mistakes(times)
        what = f"a noisy link with {alpha:g} s and {1 / beta / 1e9:g} GB/s"
        compare(exercise.fit(list(SIZES), times), expected, mistaken, what)


@pytest.mark.ranks(1)
def test_the_least_errors_may_need_a_negative_delay(exercise):
    """The least sum counts, even where the table is steeper than a link's."""
    sizes = [k * 1_000_000 for k in (1, 2, 3, 5, 8)]
    times = [1e-9 * size + 1e-16 * size**2 for size in sizes]
    expected = least_squares(sizes, times, [1 / t for t in times])
    assert expected[0] < 0
    what = "a table whose best alpha is negative"
    compare(exercise.fit(list(sizes), times), expected, {}, what)


@pytest.mark.ranks(3)
def test_measured_and_fitted(exercise, rank):
    """Measure a link over all sizes, fit it, and get its two numbers on every rank."""
    alpha, beta = LINKS[0]
    with over(exercise, rank, alpha, beta):
        found = exercise.fit_link(list(SIZES), 4)
    compare(found, (alpha, beta), {}, "the link that was measured", 1e-3)
