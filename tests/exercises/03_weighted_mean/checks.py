"""Checks of exercises/03_weighted_mean.py."""

import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()  # a sum is divided by a count, not by the world size


def samples(counts, seed, rank):
    """(this rank's values, the mean of all): counts[r] values on rank r."""
    generator = torch.Generator().manual_seed(seed)
    everything = torch.randn(sum(counts), generator=generator, dtype=torch.float64)
    everything += 3.0
    everything[::5] = 0.0  # a value of 0 counts, too
    return everything.split(counts)[rank].clone(), everything.mean()


def of_equal_counts(mean, ranks):
    """What is taken for the mean, where several mistakes give the same number."""
    return {
        "the mean times the number of ranks: divide the sum of all samples by the "
        "number of all samples, not by that of one rank": ranks * mean,
        "the mean divided by the number of ranks: the sum and the count must both be "
        "summed over the ranks once": mean / ranks,
    }


def other_quotients(counts, seed, rank):
    """Of sums and counts that don't belong together, by the words for them."""
    own = [samples(counts, seed, r)[0] for r in range(len(counts))]
    total, count, ranks = sum(values.sum() for values in own), sum(counts), len(counts)
    found = {
        "the sum of all samples divided by the number of ranks": total / ranks,
        "the sum of all samples, divided by nothing": total,
        "the mean divided by the number of ranks: reduce the sum and the count in the "
        "same way, each once": total / count / ranks,
        "the mean times the number of ranks: reduce the sum and the count in the same "
        "way, each once": total / count * ranks,
        "this rank's own sum divided by the number of all samples": (
            own[rank].sum() / count
        ),
    }
    if counts[rank]:
        by_own = total / counts[rank]
        found |= {
            "the sum of all samples divided by this rank's own number of them": by_own,
            "the sum of all samples divided by this rank's own number of them and by "
            "the number of ranks": by_own / ranks,
        }
    return found


def means_of_means(counts, seed):
    """What is taken for the mean, by the words for it."""
    own = [samples(counts, seed, r)[0] for r in range(len(counts))]
    means = [values.mean() for values in own if len(values)]
    together, ranks = sum(means), len(counts)
    found = {
        "the mean of the ranks' means": together / ranks,
        "the sum of the ranks' means": together,
    }
    if ranks > len(means):
        found = {"the mean of the ranks' means, 0 for an empty rank": together / ranks}
        found["the mean of the means of the ranks with values"] = together / len(means)
        as_one = sum(max(1, count) for count in counts)
        found["that with an empty rank counted as one sample"] = (
            sum(values.sum() for values in own) / as_one
        )
    return found


@pytest.mark.ranks(3, 4)
def test_equal_counts(exercise, rank, world_size, seed):
    """With equally many values on every rank, the mean of all of them."""
    values, expected = samples([4] * world_size, seed, rank)
    mean = exercise.mean_over_ranks(values)
    mistaken = of_equal_counts(expected, world_size)
    what = "the mean over all ranks"
    expect.close(mean, expected, what, local=values.mean(), mistaken=mistaken)


@pytest.mark.ranks(3, 4)
def test_unequal_counts(exercise, rank, world_size, seed):
    """With unequal counts every value has the same weight, whatever its rank."""
    counts = [2 + 3 * r * r for r in range(world_size)]
    values, expected = samples(counts, seed, rank)
    kept = values.clone()
    mean = exercise.mean_over_ranks(values)
    kind = type(mean).__name__
    expect.that(torch.is_tensor(mean), f"the mean is of type {kind}, expected a tensor")
    mistaken = means_of_means(counts, seed) | other_quotients(counts, seed, rank)
    what = "the mean over all samples"
    expect.close(mean, expected, what, local=kept.mean(), mistaken=mistaken)
    expect.unchanged(values, kept, "this rank's values after the call")


@pytest.mark.ranks(4)
def test_a_rank_without_values(exercise, rank, world_size, seed):
    """A rank without values calls every collective and doesn't change the mean."""
    for counts in ([5, 0, 1, 3], [0, 4, 2, 0]):
        values, expected = samples(counts, seed, rank)
        what = f"the mean of {'+'.join(map(str, counts))} values"
        mistaken = means_of_means(counts, seed)
        mean = exercise.mean_over_ranks(values)
        expect.close(mean, expected, what, mistaken=mistaken)


@pytest.mark.ranks(3, 4)
def test_a_loss_that_is_not_a_number(exercise, rank, world_size, seed):
    """If one value of one rank is NaN, so is the mean, as in one process."""
    values, _ = samples([r + 1 for r in range(world_size)], seed, rank)
    if rank == 1:
        values[0] = float("nan")
    mean = exercise.mean_over_ranks(values)
    expect.that(
        bool(torch.as_tensor(mean).isnan().all()),
        f"the mean is {float(mean):.6g}, although one of the values is NaN: a training "
        "run that diverged would look healthy",
    )


@pytest.mark.ranks(3, 4)
def test_a_late_rank(exercise, rank, world_size, seed):
    """The mean is right even if one rank is 0.3 s late."""
    values, expected = samples([r + 1 for r in range(world_size)], seed, rank)
    if rank == 1:
        time.sleep(0.3)
    mean = exercise.mean_over_ranks(values).clone()
    expect.close(mean, expected, "the mean with a late rank", local=values.mean())


@pytest.mark.ranks(4)
def test_many_values_stay_where_they_are(exercise, rank, world_size, seed, ledger):
    """A few numbers per rank are sent, not the samples."""
    values, expected = samples([500 + 100 * r for r in range(world_size)], seed, rank)
    ledger.clear()
    mean = exercise.mean_over_ranks(values)
    passed = sum(row.bytes for row in ledger.rows)
    expect.close(mean, expected, "the mean of some thousand samples")
    expect.right_way(
        passed <= values.nbytes // 4,
        f"this rank passed {passed} bytes to torch.distributed, and its samples have "
        f"{values.nbytes}: its sum and its count are enough, which is 16 bytes",
    )
    dist.barrier()
