"""Checks of exercises/08_global_rank.py."""

import contextlib
import json
import os
import random
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect, variants

# (nodes in their order, ranks of each); four processes in all
LAYOUTS = {1: [3, 1], 2: [1, 2, 1]}


PLACE = "the rank", "the world size"

# what another launcher, or an older job, may have left in the environment
STRAY = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "6"}


def environment(nodes, node_rank):
    """The program's variables, and numbers that don't count."""
    told = {"NNODES": str(nodes), "NODE_RANK": str(node_rank), "MASTER_PORT": "29500"}
    os.environ.update(STRAY)
    return STRAY | told


def place_of(local_rank, nprocs, environ, *, rank=None, size=None):
    """Node by node; the keywords are what goes wrong."""
    nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
    found = [node_rank * nprocs + local_rank, nodes * nprocs]
    for part, mistake in enumerate((rank, size)):
        if mistake is not None:
            found[part] = mistake(local_rank, nprocs, nodes, node_rank)
    return tuple(found)


MISTAKEN_PLACES = {
    "the ranks were dealt to the nodes in turn, not node by node": {
        "rank": lambda local, nprocs, nodes, node: local * nodes + node
    },
    "NODE_RANK were multiplied by NNODES, not by nprocs": {
        "rank": lambda local, nprocs, nodes, node: node * nodes + local
    },
    "the local rank were the rank": {"rank": lambda local, nprocs, nodes, node: local},
    "nodes were counted from 1": {
        "rank": lambda local, nprocs, nodes, node: (node + 1) * nprocs + local
    },
    "RANK were read, which another launcher has left": {
        "rank": lambda local, nprocs, nodes, node: int(STRAY["RANK"])
    },
    "the world size were that of one node": {
        "size": lambda local, nprocs, nodes, node: nprocs
    },
    "the world size were the number of nodes": {
        "size": lambda local, nprocs, nodes, node: nodes
    },
    "WORLD_SIZE were read, which another launcher has left": {
        "size": lambda local, nprocs, nodes, node: int(STRAY["WORLD_SIZE"])
    },
}


def check_all_places(exercise, nodes, nprocs):
    """place on every rank of all nodes."""
    cases = [
        (local_rank, nprocs, environment(nodes, node_rank))
        for node_rank in range(nodes)
        for local_rank in range(nprocs)
    ]
    asked = exercise.place
    cause = variants.cause_in(asked, cases, place_of, MISTAKEN_PLACES)
    for case in cases:
        local_rank, _, environ = case
        node_rank = environ["NODE_RANK"]
        what = f"place({local_rank}, {nprocs}, NNODES={nodes} NODE_RANK={node_rank})"
        same_place(asked(*case), place_of(*case), what, cause)


def same_place(found, right, what, cause=""):
    """Compare (rank, world size), each by its name."""
    if not isinstance(found, tuple) or len(found) != 2:
        return expect.equal(found, right, what)
    for name, value, wanted in zip(PLACE, found, right, strict=True):
        expect.equal(value, wanted, f"{what}: {name}", cause=cause)


def place_among(node_rank, local_rank, counts, *, rank=None, size=None):
    """Node by node, where nodes start ``counts``; the keywords are what goes wrong."""
    found = [sum(counts[:node_rank]) + local_rank, sum(counts)]
    for part, mistake in enumerate((rank, size)):
        if mistake is not None:
            found[part] = mistake(node_rank, local_rank, counts)
    return tuple(found)


def squares(counts):
    return sum(count * count for count in counts)


def dealt_in_turn(node, local, counts):
    before = sum(min(count, local) for count in counts)
    return before + sum(count > local for count in counts[:node])


MISTAKEN_AMONG_UNEQUAL = {
    "each rank of a node added the node's number: add it once for each node": {
        "rank": lambda node, local, counts: squares(counts[:node]) + local,
        "size": lambda node, local, counts: squares(counts),
    },
    "the ranks of this node were before it, too: add up those of earlier nodes": {
        "rank": lambda node, local, counts: sum(counts[: node + 1]) + local
    },
    "all nodes started as many ranks as this one": {
        "rank": lambda node, local, counts: node * counts[node] + local,
        "size": lambda node, local, counts: len(counts) * counts[node],
    },
    "the rank were that of nodes which all start as many ranks as this one": {
        "rank": lambda node, local, counts: node * counts[node] + local
    },
    "the world size were NNODES times the ranks of this node": {
        "size": lambda node, local, counts: len(counts) * counts[node]
    },
    "the world size had no later nodes in it": {
        "size": lambda node, local, counts: sum(counts[: node + 1])
    },
    "only the nodes before this one counted": {
        "size": lambda node, local, counts: sum(counts[:node])
    },
    "the world size were that of one node": {
        "size": lambda node, local, counts: counts[node]
    },
    "the world size were the number of nodes": {
        "size": lambda node, local, counts: len(counts)
    },
    "the world size were one too small: it's a number of ranks": {
        "size": lambda node, local, counts: sum(counts) - 1
    },
    "the ranks of later nodes were added up, not those of earlier ones": {
        "rank": lambda node, local, counts: sum(counts[node + 1 :]) + local
    },
    "each earlier node had one rank": {
        "rank": lambda node, local, counts: node + local
    },
    "the ranks were dealt to the nodes in turn, not node by node": {
        "rank": dealt_in_turn
    },
    "the local rank were the rank": {"rank": lambda node, local, counts: local},
}


def cause_among(places, counts):
    """The clause of a mistake that leads to these places of all ranks, or ""."""
    cases = [(*seat(rank, counts), counts) for rank in range(sum(counts))]
    if sorted(places) != list(range(len(cases))):
        return ""
    found = [places[rank] for rank in range(len(cases))]
    return variants.cause(found, cases, place_among, MISTAKEN_AMONG_UNEQUAL)


def places_of_all(rank, found, counts, folder):
    """What each rank has found, as far as the others are done within 3 s."""
    new = folder / f"new place {rank}"
    told = json.dumps(found, default=repr) if isinstance(found, tuple) else "null"
    new.write_text(told)
    new.rename(folder / f"place {rank}")
    wrong = repr(found) != repr((rank, sum(counts)))  # a right rank needn't wait
    until = time.monotonic() + 3 * wrong
    while len(list(folder.glob("place *"))) < sum(counts) and time.monotonic() < until:
        time.sleep(0.02)
    texts = {int(path.name[6:]): path.read_text() for path in folder.glob("place *")}
    read = {number: json.loads(text) for number, text in texts.items()}
    return {n: tuple(one) for n, one in read.items() if isinstance(one, list)}


def layout(seed):
    return LAYOUTS[1 + seed % 2]


def seat(rank, counts):
    """(node_rank, local_rank) of a process of the grader."""
    for node_rank, count in enumerate(counts):
        if rank < count:
            return node_rank, rank
        rank -= count
    raise AssertionError("more processes than seats")


def open_store(folder, name):
    store = dist.FileStore(str(folder / name), -1)
    store.set_timeout(timedelta(seconds=60))  # past the limit: who waits forever hangs
    return store


def arrive_last(rank, store, folder):
    """Rank 0 asks once another has: the order in which ranks arrive says nothing."""
    (folder / f"rank {rank} begins").touch()
    while rank == 0 and len(list(folder.glob("rank * begins"))) < 4:
        time.sleep(0.02)
    until = time.monotonic() + 2  # the others may wait for rank 0, or ask nothing
    while rank == 0 and store.num_keys() < 2 and time.monotonic() < until:
        time.sleep(0.02)  # one key is the store's own
    time.sleep(0.2 if rank == 0 else 0)


@contextlib.contextmanager
def short_sleeps():
    """A sleep lasts 20 ms at most: enough to ask again, not to wait for the others."""
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(min(seconds, 0.02))
    try:
        yield
    finally:
        time.sleep = sleep


@pytest.mark.ranks(1, init=False)
def test_two_nodes_of_four(exercise):
    """place: with 2 nodes of 4 ranks, node 1 has ranks 4 to 7 of 8."""
    check_all_places(exercise, 2, 4)


@pytest.mark.ranks(1, init=False)
def test_every_place_is_taken_once(exercise, seed):
    """place: over all nodes, each rank from 0 to world_size - 1 occurs once."""
    draw = random.Random(seed)
    nodes, nprocs = draw.choice([(3, 5), (5, 3), (7, 2), (4, 1)])
    check_all_places(exercise, nodes, nprocs)


@pytest.mark.ranks(4, init=False, limit=15)
def test_unequal_nodes_ask_each_other(exercise, rank, seed, shared_dir):
    """place_among_unequal: it works for nodes with 3 and 1 ranks, or 1, 2 and 1."""
    counts = layout(seed)
    node_rank, local_rank = seat(rank, counts)
    environ = environment(len(counts), node_rank)
    store = open_store(shared_dir, "asked")
    nprocs = counts[node_rank]
    arrive_last(rank, store, shared_dir)
    with short_sleeps():
        found = exercise.place_among_unequal(local_rank, nprocs, environ, store)
    what = f"local rank {local_rank} of node {node_rank}, where nodes start {counts}"
    cause = cause_among(places_of_all(rank, found, counts, shared_dir), counts)
    same_place(found, (rank, 4), what, cause)


@pytest.mark.ranks(1, init=False)
def test_numbers_of_two_digits(exercise):
    """place_among_unequal: 12 nodes, of which the third starts 10 ranks."""
    counts = [1, 1, 10, *[1] * 9]
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=3))
    check_places(exercise, store, counts, "")
    check_places(exercise, store, counts, ", at the second call")


def check_places(exercise, store, counts, when):
    """All ranks of all nodes ask at once, over one store."""
    found, failed, nodes = {}, [], len(counts)

    def call(rank):
        node_rank, local_rank = seat(rank, counts)
        asked = local_rank, counts[node_rank], environment(nodes, node_rank), store
        try:
            found[rank] = exercise.place_among_unequal(*asked)
        except Exception as error:
            failed.append(error)

    ranks = [threading.Thread(target=call, args=[n]) for n in range(sum(counts))]
    for thread in ranks:
        thread.start()
    for thread in ranks:
        thread.join()
    if failed:  # who waited for one that failed isn't the cause
        raise min(failed, key=lambda error: isinstance(error, dist.DistError))
    cause = cause_among(found, counts)
    for rank, place in sorted(found.items()):
        node_rank, local_rank = seat(rank, counts)
        what = f"local rank {local_rank} of node {node_rank}, where nodes start"
        same_place(place, (rank, len(ranks)), f"{what} {counts}{when}", cause)


@pytest.mark.ranks(4, init=False, limit=15)
def test_all_nodes_join_one_group(exercise, rank, seed, shared_dir):
    """join: all ranks are in one group, and each gets its own device."""
    counts = layout(seed)
    node_rank, local_rank = seat(rank, counts)
    environ = environment(len(counts), node_rank)
    store = open_store(shared_dir, "joined")
    joined, init = [], dist.init_process_group

    def init_process_group(*args, **kwargs):
        joined.append(kwargs.get("store") or (list(args) + 5 * [None])[5])
        try:
            return init(*args, **kwargs)
        except Exception as error:  # of the line that called this
            raise error.with_traceback(None) from None

    dist.init_process_group = init_process_group
    try:
        device = exercise.join(local_rank, counts[node_rank], environ, store)
    finally:
        dist.init_process_group = init
    expect.that(dist.is_initialized(), "join joined no process group")
    expect.that(joined[-1] is not None, "the process group was not joined over store")
    joined_as = dist.get_rank(), dist.get_world_size()
    what = f"local rank {local_rank} of node {node_rank}, in the joined group"
    same_place(joined_as, (rank, 4), what)
    total = torch.tensor([10.0**rank], dtype=torch.float64)
    dist.all_reduce(total)
    expect.close(total, torch.tensor([1111.0], dtype=torch.float64), "the sum of all")
    what = f"the device of local rank {local_rank} on node {node_rank}"
    expect.equal(device, local_rank, what)
