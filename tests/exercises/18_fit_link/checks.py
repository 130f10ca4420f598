"""Checks of exercises/18_fit_link.py: links that are drawn, with their noise."""

import numbers
import random
import statistics

import pytest

from workshop.grader import expect

expect.nothing_is_averaged()

SIZES = [4, 256, 4096, 65536, 1 << 20, 1 << 22, 1 << 24]
LINKS = [(2e-5, 1 / 12e9), (3e-4, 1 / 1.1e9), (1.5e-6, 1 / 300e9)]  # (alpha, beta)


def least_squares(sizes, times, weights):
    """(alpha, beta) with the least sum of (weight x error in seconds)^2."""
    rows = [(w * w, n, t) for w, n, t in zip(weights, sizes, times, strict=True)]
    w, n, t = (sum(row[0] * row[k] for row in rows) for k in (0, 1, 2))
    w = sum(row[0] for row in rows)
    beta = sum(u * (size - n / w) * (time - t / w) for u, size, time in rows)
    beta /= sum(u * (size - n / w) ** 2 for u, size, _ in rows)
    return (t - beta * n) / w, beta


def drawn(draw, alpha, beta, noise):
    """Repeats of each size: a slow first one, noise, and one that was disturbed."""
    found = []
    for size in SIZES:
        repeats = [
            (alpha + beta * size) * draw.uniform(1 - noise, 1 + noise)
            for _ in range(draw.choice([6, 7]))
        ]
        repeats[0] += 50 * alpha
        repeats[3] *= 4 if noise else 1
        found.append(repeats)
    return found


def is_near(found, expected, tolerance=1e-8):
    return abs(found - expected) <= tolerance * abs(expected)


def compare(found, expected, mistaken, what):
    """Say which of the two is wrong, and what it looks like."""
    expect.that(
        isinstance(found, tuple | list) and len(found) == 2,
        f"fit returns {found!r}; expected (alpha, beta)",
    )
    for value in found:
        is_number = isinstance(value, numbers.Real)
        expect.that(is_number, f"fit returns {found!r}; expected two numbers")
    both = [float(value) for value in found]
    if all(map(is_near, both, expected)):
        return
    for words, other in mistaken.items():
        if all(map(is_near, both, other)):
            expect.that(False, f"{what}: alpha and beta are those of {words}")
    for name, value, right in zip(("alpha", "beta"), both, expected, strict=True):
        if is_near(value, right, 5e-6):
            words = f"{name} has the first digits alone: is all of it in float64?"
        else:
            words = f"{name} is {value:.7g}, expected {right:.7g}"
        expect.that(is_near(value, right), f"{what}: {words}")


def likely_mistakes(repeats):
    """What other fits than the asked one give for the same repeats."""
    t = [statistics.median(some[1:]) for some in repeats]
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
    }


@pytest.mark.ranks(1)
def test_typical_time_of_a_size(exercise, seed):
    """The median of all repeats except the first."""
    draw, another = random.Random(seed), "leaves out another repeat than the first"
    for count in (6, 7, 9, 10):
        repeats = [draw.uniform(1, 9) for _ in range(count)]
        repeats[0] = 95.0 if count % 2 else 0.01  # slow, or suspiciously fast
        repeats[2] += 400
        kept = list(repeats)
        found = exercise.typical(repeats)
        expect.that(found is not None, "typical returns None: is a `return` missing?")
        expect.equal(repeats, kept, "the repeats that typical was given, afterwards")
        for words, other in [  # the upper one first: a slow first one moves there, too
            (
                "takes the upper of the two in the middle",
                statistics.median_high(kept[1:]),
            ),
            ("counts the first repeat", statistics.median(repeats)),
            (
                "takes the mean, which the slow repeat spoils",
                statistics.mean(kept[1:]),
            ),
            ("takes the fastest repeat", min(kept[1:])),
            (another, statistics.median(kept[:-1])),
            (another, statistics.median(sorted(kept)[1:])),
            (
                "takes the lower of the two in the middle",
                statistics.median_low(kept[1:]),
            ),
        ]:
            right = statistics.median(kept[1:])
            alike = is_near(float(found), other) and not is_near(other, right)
            expect.that(
                not alike, f"typical {words}: {found:.4g}, expected {right:.4g}"
            )
        what = f"the typical one of {count} repeats"
        expect.close(float(found), statistics.median(kept[1:]), what)


@pytest.mark.ranks(1)
def test_link_without_noise(exercise, seed):
    """Exact times of a link give its alpha and beta back."""
    draw = random.Random(seed)
    for alpha, beta in LINKS:
        repeats = drawn(draw, alpha, beta, 0)
        _, mistaken = likely_mistakes(repeats)
        what = f"a link with {alpha:g} s and {1 / beta / 1e9:g} GB/s"
        sizes = SIZES[3:] + SIZES[:3]  # they may be in any order
        repeats = repeats[3:] + repeats[:3]
        kept, given = [list(some) for some in repeats], list(sizes)
        found = exercise.fit(sizes, repeats)
        expect.equal(sizes, given, "the sizes that fit was given, afterwards")
        expect.equal(repeats, kept, "the repeats that fit was given, afterwards")
        compare(found, (alpha, beta), mistaken, what)


@pytest.mark.ranks(1)
def test_noisy_link_has_the_least_relative_errors(exercise, seed):
    """With noise, alpha and beta minimize the squares of the relative errors."""
    draw = random.Random(seed)
    for alpha, beta in LINKS:
        repeats = drawn(draw, alpha, beta, 0.2)
        expected, mistaken = likely_mistakes(repeats)
        what = f"a noisy link with {alpha:g} s and {1 / beta / 1e9:g} GB/s"
        compare(exercise.fit(list(SIZES), repeats), expected, mistaken, what)


@pytest.mark.ranks(1)
def test_the_least_errors_may_need_a_negative_delay(exercise):
    """The least sum counts, even where the table is steeper than a link's."""
    sizes = [k * 1_000_000 for k in (1, 2, 3, 5, 8)]
    repeats = [[1.0, 1e-9 * size + 1e-16 * size**2] for size in sizes]
    times = [some[1] for some in repeats]
    expected = least_squares(sizes, times, [1 / t for t in times])
    assert expected[0] < 0
    what = "a table whose best alpha is negative"
    compare(exercise.fit(list(sizes), repeats), expected, {}, what)
