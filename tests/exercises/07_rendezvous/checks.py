"""Checks of exercises/07_rendezvous.py: each rank is an agent, the store is a file."""

import math
import re
import time
from datetime import timedelta

import pytest
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()

LONG = 8  # seconds to wait for agents that all come
SHORT = 3  # for agents that come at the same time
PATIENCE = 0.9  # for agents that never come


class WatchedStore(dist.FileStore):
    """Remembers a limit that is longer than ``seconds``, and never waits that long."""

    seconds = float(LONG)
    too_long = ""
    added = math.inf  # when this agent last added to a counter

    def add(self, key, amount):
        found = super().add(key, amount)
        if amount:
            self.added = time.monotonic()
        return found

    def get(self, key):
        if not self.check([key]):
            self.wait([key])
        return super().get(key)

    def wait(self, keys, timeout=None):
        self.until(keys, self.limit(keys, timeout))

    def until(self, keys, limit):
        if limit.total_seconds() >= 1:
            super().wait(keys, limit)
        else:  # a FileStore waits for whole seconds
            self.ask(keys, limit)

    def ask(self, keys, limit):
        """As a store does, but not as a rank that waits for another one forever."""
        until = time.monotonic() + limit.total_seconds()
        while not self.check(keys):
            if time.monotonic() > until:
                raise RuntimeError("Wait timeout")
            time.sleep(0.01)

    def limit(self, keys, timeout):
        """The limit of a wait, which is no longer than ``seconds``."""
        limit = self.timeout if timeout is None else timeout
        if self.check(keys) or limit.total_seconds() <= self.seconds + 1:
            return limit
        why = ": "
        if limit == timedelta(self.seconds):
            why = f": timedelta({self.seconds:g}) are days, so "
        elif timeout is None:
            why = ", its own limit: "
        self.too_long = f"{limit}{why}pass timedelta(seconds=seconds)"
        return timedelta(seconds=self.seconds)


class SlowStore(WatchedStore):
    """Between two calls of ``add`` by one agent, the others have time for theirs."""

    def add(self, key, amount):
        found = super().add(key, amount)
        time.sleep(0.15)
        return found

    def until(self, keys, limit):
        self.ask(keys, limit)


def store_in(folder, world_size, kind=WatchedStore):
    return kind(str(folder / "store"), world_size)


def outcome(exercise, store, run, nodes, seconds):
    """("returned", node rank), or the error's type and what it says."""
    store.seconds, begun = seconds, time.monotonic()
    try:
        found = "returned", exercise.join(store, run, nodes, seconds)
    except NotImplementedError:
        raise
    except (RuntimeError, TimeoutError) as error:
        found = type(error).__name__, str(error)
    expect.that(
        not store.too_long,
        f"`seconds` is {seconds:g}, and the store waits for up to {store.too_long}",
    )
    took = time.monotonic() - begun
    expect.that(
        found[0] != "TimeoutError" or took > 0.7 * seconds,
        f"`seconds` is {seconds:g}, and after {took:.2f} s join raised TimeoutError: "
        "pass timedelta(seconds=seconds) to store.wait",
    )
    return found


def gathered(value):
    everyone: list = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, value)
    return everyone


def returned(how, found, run):
    expect.that(
        how == "returned",
        f"all agents of {run} called join, and here it raised {how}: {found}",
    )
    expect.that(
        isinstance(found, int),
        f"join returned {found!r} to an agent of {run}: a node rank is an int",
    )


def numbered(found, run):
    """The node ranks of all agents of a run."""
    right = list(range(len(found)))
    cause = ""
    if sorted(found) == [number + 1 for number in right]:
        cause = "node ranks began at 1: add returns the counter after adding"
    elif len(set(found)) < len(found):
        cause = (
            "two agents had the same number: let the store count, in one call of add"
        )
    expect.equal(sorted(found), right, f"the node ranks of {run}, sorted", cause=cause)


@pytest.mark.ranks(3, 4, limit=20)
def test_all_agents_get_a_number(exercise, rank, world_size, seed, shared_dir):
    """Each agent gets its own node rank, and none before the last one has joined."""
    run = f"job-{seed % 100}"
    store = store_in(shared_dir, world_size)
    if rank == 1:
        time.sleep(0.4)
    (shared_dir / f"agent_{rank}").touch()
    how, found = outcome(exercise, store, run, world_size, LONG)
    there = len(list(shared_dir.glob("agent_*")))
    returned(how, found, run)
    expect.that(
        there == world_size,
        f"join returned {found} here when {there} of {world_size} agents had called it",
    )
    numbered(gathered(found), run)


@pytest.mark.ranks(3, 4, limit=20)
def test_agents_at_the_same_time(exercise, world_size, seed, shared_dir):
    """Agents that join at the same time get different numbers, too."""
    run = f"job-{seed % 100}"
    store = store_in(shared_dir, world_size, SlowStore)
    dist.barrier()
    how, found = outcome(exercise, store, run, world_size, SHORT)
    everyone = gathered((how, found))
    failed = [text for told, text in everyone if told != "returned"]
    expect.that(
        not failed,
        f"{world_size} agents called join at the same time, and {len(failed)} of them "
        "got no node rank: is it from a single call of add? Between two calls, other "
        f"agents count. One said {failed[:1]}",
    )
    numbered([number for _, number in everyone], run)


@pytest.mark.ranks(3, 4, limit=20)
def test_runs_do_not_mix(exercise, rank, world_size, seed, shared_dir):
    """Two runs share a store: each has its own node ranks, from 0."""
    store = store_in(shared_dir, world_size)
    agents = {"job-1": [0, world_size - 1], "job-11": list(range(1, world_size - 1))}
    run = "job-1" if rank in agents["job-1"] else "job-11"
    # one run after the other: who comes first must not decide what a mistake leads to
    if run == "job-1":
        dist.barrier()
    how, found = outcome(exercise, store, run, len(agents[run]), LONG)
    if run == "job-11":
        dist.barrier()
    everyone = gathered((how, found))
    mixed = [other for other, (told, _) in enumerate(everyone) if told != "returned"]
    expect.that(
        not mixed,
        f"job-1 has 2 agents and job-11 has {world_size - 2}, as both asked for, and "
        f"{len(mixed)} of them got no number: it is as if agents of the other run "
        "counted, too. Use run_id in every key",
    )
    own = [everyone[agent][1] for agent in agents[run]]
    ranks = own == agents[run] and own != sorted(range(len(own)))
    expect.that(
        not ranks,
        f"the agents of {run} got {own}, the ranks of their processes: an agent "
        "has no rank yet, the store counts",
    )
    numbered(own, run)


@pytest.mark.ranks(3, 4, limit=20)
def test_another_run_is_complete(exercise, rank, world_size, shared_dir):
    """A run that lacks a node waits, although another run of the store is complete."""
    nodes = world_size + 1
    store = store_in(shared_dir, nodes)
    if rank == 0:
        how, found = outcome(exercise, store, "job-11", 1, LONG)
        returned(how, found, "job-11")
    dist.barrier()
    how, found = outcome(exercise, store, "job-1", nodes, PATIENCE)
    expect.that(
        how != "returned",
        f"join returned {found} to an agent of job-1, which lacks a node: has it read "
        "a key of job-11, which is complete? Begin every key with run_id and a "
        'separator, such as "/": without one, "job-1" + "1" is "job-11"',
    )


@pytest.mark.ranks(3, 4, limit=20)
def test_nodes_are_missing(exercise, rank, world_size, seed, shared_dir):
    """If two nodes never join, the others raise TimeoutError and say how many did."""
    run = f"job-{seed % 100}"
    nodes = world_size + 2
    store = store_in(shared_dir, nodes)
    dist.barrier()
    if rank == 1:
        time.sleep(0.2)  # when the others wait
    begun = time.monotonic()
    how, found = outcome(exercise, store, run, nodes, PATIENCE)
    ended = time.monotonic()
    told = f"{how}: {found}" if how != "returned" else f"join returned {found}"
    expect.that(
        how == "TimeoutError",
        f"2 of {nodes} nodes are missing: join must raise TimeoutError here; {told}",
    )
    wanted = f"{run}: {world_size} of {nodes} nodes joined"
    expect.that(run in found, f"the TimeoutError must name {run}; it says {found!r}")
    says_count = re.search(rf"\b(\d+) of {nodes}\b", found)
    expect.that(says_count, f"the TimeoutError must say {wanted!r}; it says {found!r}")
    agents = gathered((int(says_count[1]), begun, store.added, ended))
    right_counts(agents, rank, nodes)


def right_counts(agents, rank, nodes):
    """Each agent tells how many had joined when its time was over.

    Args:
        agents: of each, what it told, and when it began, joined and gave up.
    """
    told, begun, _, ended = agents[rank]
    # some right answers count for the last time a little before the time is over
    before = sum(joined < begun + 0.7 * PATIENCE for _, _, joined, _ in agents)
    until = sum(began < ended for _, began, _, _ in agents)
    counts = sorted(count for count, *_ in agents)
    cure = "count them when the time is over: store.add(key, 0) reads the counter"
    cause = ""
    if counts == [number + 1 for number in range(len(agents))]:
        cause = "each agent told how many there were when it joined itself"
    elif counts == list(range(len(agents))):
        cause = "each agent told its own node rank"
    expect.that(
        before <= told <= until,
        f'the TimeoutError says "{told} of {nodes}", and {until} agents had joined '
        f"by then: {cure}",
        cause=cause,
    )
    # the last agent that joined has seen all of them
    world_size = len(agents)
    here = f"{told} of {nodes}"
    expect.that(
        world_size in counts,
        f"{world_size} agents joined, and no TimeoutError says so; here: {here!r}",
    )


@pytest.mark.ranks(3, 4, limit=20)
def test_one_too_many(exercise, rank, world_size, seed, shared_dir):
    """One extra agent gets a RuntimeError; the others get their node ranks."""
    run = f"job-{seed % 100}"
    nodes = world_size - 1
    store = store_in(shared_dir, world_size)
    how, found = outcome(exercise, store, run, nodes, LONG)
    everyone = gathered((how, found))
    refused = [text for told, text in everyone if told == "RuntimeError"]
    expect.that(
        len(refused) == 1,
        f"{world_size} agents joined a run of {nodes} nodes: one must get a "
        f"RuntimeError, and {len(refused)} did. Here: {how} {found}",
    )
    expect.that(
        run in refused[0], f"the RuntimeError must name {run}; it says {refused[0]!r}"
    )
    numbered([number for told, number in everyone if told == "returned"], run)
