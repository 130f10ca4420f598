"""Checks of exercises/06_shard_stream.py."""

import itertools
import random

import pytest
import torch
from torch.utils.data import DataLoader

from workshop.grader import expect

COUNT, BATCH_SIZE, BUFFER = 53, 3, 8  # no step of 3, 4 or 1 ranks divides the count
WORLDS = (3, 4, 1)
# (epoch, seed): seed 12 and epoch 1 have the digits of seed 1 and epoch 21; the last
# two have the same sum and the same product
LOOK_ALIKE = ((1, 12), (21, 1), (12, 21), (21, 12))
# seed * 1000 + epoch is the same for epoch 1000 of seed 0 as for epoch 0 of seed 1
FACTORS = (10, 100, 1000, 10_000, 100_000)
FAR_APART = ((0, 1), (1, 0), *((n, 0) for n in FACTORS), *((0, n) for n in FACTORS))

expect.nothing_is_averaged()


def new_stream(exercise, seed, rank=0, world_size=1, count=COUNT):
    """The stream of a rank, as a new process makes it."""
    return exercise.BatchStream(count, BATCH_SIZE, BUFFER, seed, rank, world_size)


def batches_of(stream, workers=0):
    """What a loader gives, which are lists of whole numbers."""
    start = None
    if workers:
        # from Python 3.14 on, workers are started anew and import the learner's module
        # by its name; there is no other thread here, so a fork is safe
        start = "fork"
    loader = DataLoader(
        stream, batch_size=None, num_workers=workers, multiprocessing_context=start
    )
    found = list(loader)
    for batch in found:
        right = isinstance(batch, list) and all(type(one) is int for one in batch)
        shown = f"{batch!r}"[:60]
        expect.that(right, f"__iter__ yields {shown}: yield lists of records")
    return found


def of_all_ranks(exercise, seed, world_size, workers=0, count=COUNT):
    """The batches of each rank."""
    return [
        batches_of(new_stream(exercise, seed, rank, world_size, count), workers)
        for rank in range(world_size)
    ]


def expect_each_once(ranks, count, how):
    """Fail with the first record that isn't read once, and who reads it."""
    for record in range(count):
        who = [
            rank
            for rank, batches in enumerate(ranks)
            for batch in batches
            for one in batch
            if one == record
        ]
        ranks_that_do = ", ".join(map(str, dict.fromkeys(who)))
        told = f"is read {len(who)} times, by rank {ranks_that_do}"
        if not who:
            told = "is never read"
        expect.that(len(who) == 1, f"{how}: record {record} of {count} {told}")
    total = sum(len(batch) for batches in ranks for batch in batches)
    expect.that(total == count, f"{how}: {total} records are read, of {count}")


@pytest.mark.ranks(1, init=False, limit=15)
def test_order_of_an_epoch(exercise, seed):
    """An epoch has every record once, in an order that a buffer can give."""
    stream = new_stream(exercise, seed)
    order = list(stream.order())
    expect.equal(sorted(order), list(range(COUNT)), "the records of order(), sorted")
    expect.that(order != sorted(order), "order() is not shuffled")
    for turn, record in enumerate(order):
        expect.right_way(
            record < turn + BUFFER,
            f"order() gives record {record} as number {turn}: with {BUFFER} records "
            "in memory it isn't read yet, so call shuffled with buffer_size",
        )


def has_text(value):
    if isinstance(value, tuple | frozenset):
        return any(map(has_text, value))
    return isinstance(value, str | bytes)


def hash_elsewhere(value):
    """``hash`` of another process, which has another salt for texts."""
    return hash(("elsewhere", value)) if has_text(value) else hash(value)


@pytest.mark.ranks(1, init=False, limit=15)
def test_epochs_and_seeds_have_orders_of_their_own(exercise, exercise_again, seed):
    """The order changes with the epoch and with the seed, and with nothing else."""
    orders = {}
    exercise_again.hash = hash_elsewhere
    pairs = [(0, seed), (1, seed), (2, seed), (0, seed + 1), (1, seed + 1)]
    for epoch, other in dict.fromkeys([*pairs, *LOOK_ALIKE, *FAR_APART]):
        stream, again = (new_stream(one, other) for one in (exercise, exercise_again))
        stream.epoch = again.epoch = epoch
        order = tuple(stream.order())
        what = (
            f"the order of epoch {epoch} in a second process, where hash() of a text "
            "differs, too"
        )
        expect.equal(list(again.order()), list(order), what)
        on_rank = new_stream(exercise, other, 2, 3)
        on_rank.epoch = epoch
        what = f"the order of epoch {epoch} on rank 2 of 3, beside rank 0's"
        expect.equal(list(on_rank.order()), list(order), what)
        before = orders.get(order, "")
        told = (
            f"epoch {epoch} of seed {other} has the order of {before}: draw it from "
            "numbers that no other seed and epoch have"
        )
        expect.that(not before, told)
        orders[order] = f"epoch {epoch} of seed {other}"


@pytest.mark.ranks(1, init=False, limit=15)
def test_each_record_is_read_once_without_workers(exercise, seed):
    """Without workers, the ranks of one epoch read every record once."""
    for world_size in WORLDS:
        ranks = of_all_ranks(exercise, seed, world_size)
        expect_each_once(ranks, COUNT, f"{world_size} ranks without workers")


@pytest.mark.ranks(1, init=False, limit=30)
def test_each_record_is_read_once_with_workers(exercise, seed):
    """With several workers on every rank, every record is read once."""
    for world_size, workers in ((3, 2), (2, 3), (1, 2)):
        ranks = of_all_ranks(exercise, seed, world_size, workers)
        how = f"{world_size} ranks with {workers} workers each"
        expect_each_once(ranks, COUNT, how)


@pytest.mark.ranks(1, init=False, limit=15)
def test_a_step_is_read_when_it_is_needed(exercise, seed):
    """A batch needs the records up to its step, or a step more, not the whole order."""
    for steps_run in (0, 1):
        stream = new_stream(exercise, seed, 1, 3)
        stream.steps_run = steps_run
        order, read = list(stream.order()), []

        def counted(order=order, read=read):
            for record in order:
                read.append(record)
                yield record

        stream.order = counted
        next(iter(stream))
        most = (steps_run + 2) * 3 * BATCH_SIZE
        expect.right_way(
            len(read) <= most,
            f"the first batch after {steps_run} steps was there when {len(read)} of "
            f"{COUNT} records were read: a stream is too long for a list, so read a "
            "step, yield its batch, and read the next step",
        )


def why_fewer_steps(ranks, count):
    """The clause for ranks that leave out a step of which they have no record."""
    in_step = len(ranks) * BATCH_SIZE
    of_last = count % in_step
    steps = [len(batches) for batches in ranks]
    some_are_idle = 0 < of_last < len(ranks)
    leaves_out = sorted(set(steps)) == [count // in_step, count // in_step + 1]
    if some_are_idle and leaves_out:
        return "a rank without any record of a step yielded nothing: yield []"
    return ""


@pytest.mark.ranks(1, init=False, limit=15)
def test_steps_of_all_ranks(exercise, seed):
    """All ranks take equally many steps, and divide each step equally."""
    for world_size in WORLDS:
        in_step = world_size * BATCH_SIZE
        # 50: the last step has 5 records of 9, 2 of 12, 2 of 3; 37: 1, 1, 1; 36: none.
        # Then each number that a last step can have.
        for count in (50, 37, 36, *range(2 * in_step + 1, 3 * in_step)):
            ranks = of_all_ranks(exercise, seed, world_size, count=count)
            how = f"{count} records, {world_size} ranks"
            steps = [len(batches) for batches in ranks]
            wanted = [-(-count // in_step)] * world_size
            cause = why_fewer_steps(ranks, count)
            expect.equal(steps, wanted, f"the steps of each rank, {how}", cause=cause)
            order = new_stream(exercise, seed, count=count).order()
            for step, parts in enumerate(zip(*ranks, strict=True)):
                due = list(itertools.islice(order, in_step))
                records = sorted(itertools.chain.from_iterable(parts))
                what = f"the records of all ranks in step {step}, {how}"
                expect.equal(records, sorted(due), what)
                sizes = [len(part) for part in parts]
                told = (
                    f"in step {step}, the ranks have {sizes} records, {how}: shares "
                    "must differ by one at most"
                )
                expect.that(max(sizes) - min(sizes) <= 1, told)


@pytest.mark.ranks(1, init=False, limit=30)
def test_workers_change_nothing(exercise, seed):
    """A rank gets the same batches in the same order with any number of workers."""
    for rank, workers in ((0, 1), (2, 2), (1, 3)):
        alone = batches_of(new_stream(exercise, seed, rank, 3))
        found = batches_of(new_stream(exercise, seed, rank, 3), workers)
        what = f"the batches of rank {rank} of 3 with {workers} workers"
        expect.equal(found, alone, what)


@pytest.mark.ranks(1, init=False, limit=60)
def test_resumed_run_continues_with_the_next_batch(exercise, exercise_again, seed):
    """A run that resumes gets exactly the batches that the whole run had left."""
    for workers, rank, steps_run in ((0, 1, 2), (2, 0, 1), (2, 1, 4), (3, 2, 2)):
        whole = batches_of(new_stream(exercise, seed, rank, 3))
        resumed = new_stream(exercise_again, seed, rank, 3)
        resumed.steps_run = steps_run
        found = batches_of(resumed, workers)
        how = f"after {steps_run} steps, rank {rank} of 3, {workers} workers"
        first = f"the first batch {how}"
        expect.that(found, f"no batch is left {how}")
        again = new_stream(exercise_again, seed, rank, 3)
        cause = why_other_batches(found, whole, steps_run, again)
        expect.equal(found[0], whole[steps_run], first, cause=cause)
        expect.equal(found, whole[steps_run:], f"the batches {how}", cause=cause)


def why_other_batches(found, whole, steps_run, stream):
    """The clause of the mistake that gives these batches; "" if none does."""
    left = whole[steps_run:]
    if found == left:
        return ""
    if found == whole:
        return "the epoch began from its first step: leave out steps_run steps"
    if sorted(found) == sorted(left):
        return (
            "the workers' turns were counted from the beginning of the epoch: worker 0 "
            "has the first step that is left"
        )
    order = list(stream.order())
    for words, records in {
        "steps_run counted records": steps_run,
        "a step had only the batch_size records of one rank": steps_run * BATCH_SIZE,
    }.items():
        stream.order = lambda first=records: iter(order[first:])
        if batches_of(stream) == found:
            return f"{words}: a step has world_size * batch_size of them"
    return ""


@pytest.mark.ranks(1, init=False, limit=15)
def test_reading_changes_nothing(exercise, seed):
    """Reading changes neither the position nor the global random numbers."""
    stream = new_stream(exercise, seed, 1, 3)
    stream.epoch, stream.steps_run = 2, 1
    before = random.getstate(), torch.get_rng_state()
    first = list(stream)
    expect.equal(stream.steps_run, 1, "steps_run after reading")
    expect.equal(stream.epoch, 2, "epoch after reading")
    expect.equal(list(stream), first, "the batches, read a second time")
    same = random.getstate() == before[0] and torch.equal(
        torch.get_rng_state(), before[1]
    )
    expect.right_way(same, "global random numbers were used: make a random.Random")
