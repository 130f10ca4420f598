"""Checks of exercises/18_communication_binds.py: each ring is walked."""

import random

import pytest

from workshop.grader import expect

expect.nothing_is_averaged()


def ring_seconds(ranks, size, alpha, beta):
    """Reduce-scatter, then all-gather: a message from each rank in every step."""
    seconds = 0.0
    for _half in ("reduce-scatter", "all-gather"):
        for _step in range(1, ranks):
            seconds += alpha + beta * (size / ranks)
    return seconds


def computed(ranks, batch, per_sequence):
    return sum(per_sequence for _ in range(batch)) / ranks * 2 / 3


def first_that_binds(batch, size, per_sequence, alpha, beta):
    for ranks in range(1, batch + 1):
        if batch % ranks == 0:
            sent = ring_seconds(ranks, size, alpha, beta)
            if sent > computed(ranks, batch, per_sequence):
                return ranks
    return None


@pytest.mark.ranks(1)
def test_seconds_of_an_all_reduce(exercise, seed):
    """2 (N - 1) steps, each with a delay and an N-th of the bytes."""
    draw = random.Random(seed)
    for ranks in (3, 2, 8, 5, 1, 64):
        size, alpha = draw.randint(1, 9) * 10**6, draw.uniform(1, 9) * 1e-4
        beta = draw.uniform(1, 9) * 1e-9
        size += 7  # bytes, which the ranks needn't divide
        expected = ring_seconds(ranks, size, alpha, beta)
        bytes_alone = ring_seconds(ranks, size, 0, beta)
        found = exercise.all_reduce_seconds(ranks, size, alpha, beta)
        mistakes = {
            "half of it, the reduce-scatter alone": expected / 2,
            "the time of a message with all bytes in each step": ring_seconds(
                ranks, size * ranks, alpha, beta
            ),
            "the time without the delays": bytes_alone,
            "the time with a single delay": bytes_alone + alpha,
            "the time of one message": alpha + beta * size,
            "the time of 2 N steps: each half needs one less": (
                2 * ranks * (alpha + beta * size / ranks)
            ),
        }
        what = f"the all-reduce of {size:,} bytes on {ranks} ranks"
        expect.close(found, expected, what, atol=0, rtol=1e-9, mistaken=mistakes)


@pytest.mark.ranks(1)
def test_seconds_of_backward(exercise, seed):
    """Two thirds of the computation of this rank's sequences."""
    draw = random.Random(seed)
    for ranks, batch in ((4, 64), (3, 48), (1, 8), (32, 32)):
        per_sequence = draw.uniform(1, 9) * 1e-3
        expected = computed(ranks, batch, per_sequence)
        found = exercise.backward_seconds(ranks, batch, per_sequence)
        mistakes = {
            "forward and backward together": expected * 3 / 2,
            "forward, one third": expected / 2,
            "the time of the whole batch": expected * ranks,
        }
        what = f"backward of {batch} sequences on {ranks} ranks"
        expect.close(found, expected, what, atol=0, rtol=1e-9, mistaken=mistakes)


@pytest.mark.ranks(1)
def test_ranks_from_which_communication_binds(exercise):
    """The fewest ranks that divide the batch and can't hide their all-reduce."""
    for batch, size, per_sequence, alpha, beta in (
        (64, 2_000_000, 5e-3, 5e-4, 1e-9),
        (64, 2_000_000, 5e-3, 1e-6, 1e-9),
        (60, 400_000_000, 2e-1, 2e-5, 1e-9),
        (60, 400_000_000, 1.1e-1, 2e-5, 1e-9),  # 10 ranks: no power of two
        (210, 100_000_000, 1e-2, 2e-5, 1e-9),
        (16, 1000, 1.0, 1e-6, 1e-9),  # never
        (7, 40_000_000, 1e-2, 1e-4, 1e-9),
        (49, 40_000_000, 1e-2, 1e-4, 1e-9),  # 7 ranks: a divisor without a partner
        (35, 200_000_000, 2e-2, 1e-4, 1e-9),
        (4, 4, 1.5, 0.5, 0.25),  # 2 ranks: both take 2 seconds, and nothing binds
    ):
        given = batch, size, per_sequence, alpha, beta
        expected = first_that_binds(*given)
        what = f"a batch of {batch}, {size:,} bytes, {per_sequence:g} s a sequence"
        found = exercise.binds_from(*given)
        if expected is None:
            words = f"{what}: is {found}, but communication never binds here"
            expect.that(found is None, words)
        else:
            expect.that(found is not None, f"{what}: is None, expected {expected}")
            expect.number(found, expected, what)
