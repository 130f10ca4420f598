"""Checks of exercises/02_join_and_leave.py."""

import contextlib
import os
import random
import socket
import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()


by_os_environ = []  # the processes that have joined so


def told(rank, world_size):
    """What this process gets; ``os.environ`` says that it is alone."""
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")

    def alone(url, timeout=None, **kwargs):
        by_os_environ.append(rank)
        yield dist.HashStore(), 0, 1

    dist.rendezvous.__globals__["_rendezvous_handlers"]["env"] = alone
    return {"RANK": str(rank), "WORLD_SIZE": str(world_size), "LOCAL_RANK": "0"}


SIZE_OF_OS = (
    "the world size was that of os.environ, which says 1 here: take WORLD_SIZE from "
    "environ"
)


@contextlib.contextmanager
def names_read():
    """The names that are looked up in ``os.environ`` meanwhile."""
    names, kind = set(), type(os.environ)
    look_up = kind.__getitem__

    def look_up_and_note(self, name):
        names.add(name)
        return look_up(self, name)

    kind.__getitem__ = look_up_and_note
    try:
        yield names
    finally:
        kind.__getitem__ = look_up


def numbers(world_size, seed):
    """One for each rank, all unequal; float32 would round them."""
    draw = random.Random(seed)
    return [2**24 * draw.randint(1, 9) + 1 + r / 8 for r in range(world_size)]


def free_port(rank, folder):
    """Rank 0 looks for one and tells the others."""
    path = folder / "port"
    if rank == 0:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            (folder / "half").write_text(str(found.getsockname()[1]))
        os.replace(folder / "half", path)
    while not path.exists():
        time.sleep(0.01)
    return path.read_text()


def adds_up(exercise, rank, world_size, mine, where):
    """Call the function once and compare; the last rank comes late."""
    environ, calls = told(rank, world_size), []

    def measure():
        why = "a run of one process joins, too" if world_size == 1 else "join first"
        expect.that(
            dist.is_initialized(),
            f"measure was called before this process had joined: {why}",
        )
        expect.that(
            not by_os_environ,
            "this process took its address, rank and world size from os.environ: pass "
            "init_process_group init_method, and rank and world_size from environ",
        )
        place = dist.get_rank(), dist.get_world_size()
        expect.that(place[1] == world_size or place[1] != 1, SIZE_OF_OS)
        expected = (rank, world_size)
        expect.equal(place, expected, "(rank, world size) in the group")
        calls.append(rank)
        return mine[rank]

    before, of_process = dict(environ), dict(os.environ)
    if rank == world_size - 1:
        time.sleep(0.2)
    with names_read() as read:
        try:
            total = exercise.sum_over_ranks(measure, where, environ)
        except (RuntimeError, ValueError):
            # no rank above 0 can join a group of one
            alone = rank > 0 and "WORLD_SIZE" in read and not calls
            expect.that(not alone, SIZE_OF_OS)
            raise
    mistaken = {
        "the mean of the ranks' numbers": sum(mine) / world_size,
        "a sum in float32": torch.tensor(mine, dtype=torch.float32).sum(),
    }
    what = "the sum over the ranks"
    expect.close(total, sum(mine), what, local=mine[rank], mistaken=mistaken)
    expect.equal(len(calls), 1, "calls of measure on this rank")
    expect.equal(environ, before, "environ after sum_over_ranks")
    changed = sorted({name for name, _ in of_process.items() ^ os.environ.items()})
    expect.that(
        not changed,
        f"sum_over_ranks changed {', '.join(changed)} in os.environ, which all other "
        "code of this process reads: pass rank and world_size to init_process_group",
    )


def is_gone(when):
    expect.that(
        not dist.is_initialized(),
        f"sum_over_ranks has {when}, and this process is still in the process group",
    )


@pytest.mark.ranks(3, 4, 1, init=False)
def test_adds_up_and_leaves(exercise, rank, world_size, seed, shared_dir):
    """Ranks join through a file, one late; each returns the sum and leaves."""
    where = f"file://{shared_dir}/meet"
    adds_up(exercise, rank, world_size, numbers(world_size, seed), where)
    is_gone("returned")


@pytest.mark.ranks(3, init=False)
def test_joins_a_second_time(exercise, rank, world_size, seed, shared_dir):
    """The same processes add up again, over a TCP port."""
    where = f"file://{shared_dir}/meet"
    adds_up(exercise, rank, world_size, numbers(world_size, seed), where)
    is_gone("returned")
    where = f"tcp://127.0.0.1:{free_port(rank, shared_dir)}"
    adds_up(exercise, rank, world_size, numbers(world_size, seed + 1), where)
    is_gone("returned")


def raises_its_own(exercise, environ, where, error, before=lambda: None):
    """What ``measure`` raises must reach this rank's caller."""

    def measure():
        before()
        raise error("nothing to measure")

    expect.raises(
        error,
        exercise.sum_over_ranks,
        measure,
        where,
        environ,
        words=["nothing to measure"],
        what=f"sum_over_ranks, where measure raises a {error.__name__}",
    )
    is_gone("raised")


@pytest.mark.ranks(3, init=False)
def test_leaves_when_measure_raises(exercise, rank, world_size, shared_dir):
    """measure raises on every rank: its error reaches the caller, no group is left."""
    environ = told(rank, world_size)
    for error in (LookupError, KeyboardInterrupt):
        where = f"file://{shared_dir}/{error.__name__}"
        raises_its_own(exercise, environ, where, error)


@pytest.mark.ranks(3, init=False)
def test_leaves_without_the_others(exercise, rank, world_size, shared_dir):
    """measure raises first on rank 1, which leaves while the others still measure."""
    environ, where = told(rank, world_size), f"file://{shared_dir}/meet"
    has_left, seen = shared_dir / "rank 1 has left", []

    def wait_for_rank_1():
        patience = time.monotonic() + 3.0
        while rank != 1 and not has_left.exists() and time.monotonic() < patience:
            time.sleep(0.01)
        seen.append(rank == 1 or has_left.exists())

    raises_its_own(exercise, environ, where, LookupError, before=wait_for_rank_1)
    if rank == 1:
        has_left.touch()
    expect.that(
        all(seen),
        "measure raised on rank 1, whose call didn't end before this rank's measure "
        "did: after an exception leave without waiting for other ranks",
    )
