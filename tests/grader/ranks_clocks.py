"""Functions that tests/grader/test_clocks.py runs in ranks."""

import time
import timeit
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from workshop.grader import clocks, expect

LINK = clocks.Link(0.5, 0.25)  # seconds, and seconds of each byte
NO_FILE = SimpleNamespace(_module=SimpleNamespace())
FOUR_BYTES = 0.5 + 4 * 0.25


def over(link=LINK, offset=0.0):
    return clocks.simulated(NO_FILE, link, offset)


@pytest.mark.ranks(2)
def test_clock_stands_still_without_calls(rank):
    with over(offset=7.0):
        begin = time.perf_counter()
        sum(range(100_000))
        expect.equal(time.perf_counter() - begin, 0.0, "the seconds of a sum")
        time.sleep(3)
        expect.equal(time.monotonic(), 10.0, "after sleeping")
        expect.equal(time.perf_counter_ns(), 10_000_000_000, "in nanoseconds")
        expect.equal(time.process_time(), 0.0, "of the CPU")
    expect.that(time.sleep is not None and time.perf_counter() != 10.0, "it is undone")


@pytest.mark.ranks(3)
def test_collective_ends_on_all_ranks_after_the_last_call(rank, ledger):
    with over() as clock:
        clock.compute(float(rank))
        dist.all_reduce(torch.zeros(3))
        one_third = 2 * 2 * FOUR_BYTES
        expect.equal(clock.now, 2 + one_third, "after an all-reduce of 12 bytes")
        expect.equal(clock.busy, float(rank), "the seconds of computing")
        dist.barrier()
        expect.equal(clock.now, 2 + one_third + 2 * 0.5, "after a barrier")
    expect.equal(ledger.ops(), ["all_reduce", "barrier"], "the rows of the ledger")


@pytest.mark.ranks(3)
def test_asynchronous_collective_overlaps(rank):
    for seconds in (1.0, 50.0):
        with over() as clock:
            work = dist.all_reduce(torch.zeros(3), async_op=True)
            assert work is not None
            clock.compute(seconds)
            work.wait()
            expect.equal(clock.now, max(seconds, 4 * FOUR_BYTES), "after both")


@pytest.mark.ranks(3)
def test_future_ends_where_it_is_waited_for(rank):
    with over() as clock:
        work = dist.all_reduce(torch.zeros(3), async_op=True)
        assert work is not None
        future = work.get_future()
        clock.compute(1.0)
        expect.equal(clock.now, 1.0, "before the wait")
        future.wait()
        expect.equal(clock.now, 4 * FOUR_BYTES, "after both")


@pytest.mark.ranks(2)
def test_message_arrives_when_it_was_sent_and_not_sooner(rank, ledger):
    message = torch.zeros(1)
    with over() as clock:
        if rank == 0:
            clock.sleep(10.0)
            dist.send(message, 1)
            expect.equal(clock.now, 10.5, "when the send returns")
            dist.recv(message)
            expect.equal(clock.now, 10 + 2 * FOUR_BYTES, "after the round trip")
        else:
            work = dist.irecv(message, 0)
            assert work is not None
            expect.equal(clock.now, 0.0, "before the wait")
            work.wait()
            expect.equal(clock.now, 10 + FOUR_BYTES, "when it has arrived")
            dist.send(message, 0)
    expect.equal(sorted(ledger.ops()), ["recv", "send"], "the rows of the ledger")


@pytest.mark.ranks(2)
def test_first_call_of_a_size_is_slow_and_others_in_turn(rank):
    link = clocks.Link(1.0, 0.0, first=9.0, slower=(2.0, 1.0))
    with over(link):
        seconds = timeit.repeat(lambda: dist.all_reduce(torch.zeros(2)), number=1)
    expect.equal(seconds, [11.0, 4.0, 2.0, 4.0, 2.0], "the seconds of five calls")


@pytest.mark.ranks(2)
def test_another_thread_sees_the_real_time(rank):
    from threading import Thread

    seen = []
    with over():
        thread = Thread(target=lambda: seen.append(time.monotonic()))
        thread.start()
        thread.join()
    expect.that(seen[0] > 0, "the grader's own thread needs it")
