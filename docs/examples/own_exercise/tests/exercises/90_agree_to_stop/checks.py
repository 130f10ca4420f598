"""Checks of exercises/90_agree_to_stop.py."""

import pytest

from workshop.grader import expect


# [start first check]
@pytest.mark.ranks(3, 4)
def test_all_below(exercise, rank, seed):
    """When every loss is below the target, every rank stops."""
    loss = 0.1 + 0.01 * rank + 0.01 * (seed % 10)
    expect.equal(exercise.should_stop(loss, 2.0), True, "should_stop")
    # [end first check]


# [start second check]
@pytest.mark.ranks(3, 4)
def test_unequal(exercise, rank, world_size, seed):
    """When one loss alone is below the target, the mean decides, on every rank."""
    losses = [0.1] + [1.0 + r + 0.1 * (seed % 10) for r in range(1, world_size)]
    mean = sum(losses) / world_size
    low = exercise.should_stop(losses[rank], mean - 0.01)
    high = exercise.should_stop(losses[rank], mean + 0.01)
    expect.equal(low, False, "should_stop below the mean")
    expect.equal(high, True, "should_stop above the mean")
    # [end second check]


@pytest.mark.ranks(3)
def test_one_number_is_enough(exercise, rank, ledger):
    """One number per rank is enough."""
    expect.equal(exercise.should_stop(float(rank), 10.0), True, "should_stop")
    passed = sum(row.numel for row in ledger.rows)
    expect.right_way(passed <= 3, f"{passed} numbers were passed to collectives")
