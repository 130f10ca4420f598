"""Checks of exercises/02_rank_arithmetic.py."""

import random

import pytest

from workshop.grader import expect


def unequal_nodes(seed):
    """Five to seven nodes, no two neighbors with equally many processes."""
    draw = random.Random(seed)
    counts = [draw.randint(2, 6)]
    for _ in range(draw.randint(4, 6)):
        counts.append(draw.choice([n for n in range(1, 7) if n != counts[-1]]))
    return counts


def same_place(found, expected, what):
    expect.equal(found, expected, what)
    kind = type(found).__name__
    expect.that(isinstance(found, tuple), f"{what} is a {kind}, expected a tuple")
    for number, wanted in zip(found, expected, strict=True):
        expect.number(number, wanted, what)


def place_of_host(exercise, rank, hosts, expected):
    passed = list(hosts)
    found = exercise.place_by_host(rank, passed)
    same_place(found, expected, f"place_by_host({rank}, {hosts})")
    expect.that(passed == hosts, f"place_by_host({rank}, ...) changed its list")


def all_places(counts):
    return [(node, local) for node, n in enumerate(counts) for local in range(n)]


@pytest.mark.ranks(1)
def test_two_nodes_of_four(exercise):
    """global_rank: node 0 holds the ranks 0 to 3, node 1 holds 4 to 7."""
    for rank, (node, local) in enumerate(all_places([4, 4])):
        found = exercise.global_rank(node, local, [4, 4])
        expect.number(found, rank, f"global_rank({node}, {local}, [4, 4])")


@pytest.mark.ranks(1)
def test_unequal_nodes(exercise, seed):
    """global_rank: the nodes before may have more or fewer processes than this one."""
    counts = unequal_nodes(seed)
    passed = list(counts)
    for rank, (node, local) in enumerate(all_places(counts)):
        found = exercise.global_rank(node, local, passed)
        what = f"global_rank({node}, {local}, {counts})"
        expect.number(found, rank, what)
        expect.that(passed == counts, f"{what} changed its list: {passed}")


@pytest.mark.ranks(1)
def test_place_on_two_nodes_of_four(exercise):
    """place: rank 5 of 2 x 4 is local rank 1 on node 1."""
    for rank, expected in enumerate(all_places([4, 4])):
        found = exercise.place(rank, [4, 4])
        same_place(found, expected, f"place({rank}, [4, 4])")


@pytest.mark.ranks(1)
def test_place_on_unequal_nodes(exercise, seed):
    """place: unequal nodes, and no change to the list that was passed."""
    counts = unequal_nodes(seed)
    passed = list(counts)
    for rank, expected in enumerate(all_places(counts)):
        same_place(exercise.place(rank, passed), expected, f"place({rank}, {counts})")
        expect.that(passed == counts, f"place({rank}, ...) changed its list: {passed}")


@pytest.mark.ranks(1)
def test_hosts_in_blocks(exercise):
    """place_by_host: hosts count by first appearance, not by the alphabet."""
    hosts = ["n10", "n10", "n10", "n2", "n7", "n7"]
    expected = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1)]
    for rank, place in enumerate(expected):
        place_of_host(exercise, rank, hosts, place)


@pytest.mark.ranks(1)
def test_hosts_in_turn(exercise, seed):
    """place_by_host: with --distribution=cyclic neighbors are on different hosts."""
    draw = random.Random(seed)
    hosts = [f"h{n}" for n in draw.sample(range(100), 3)]
    hosts = (hosts * 3)[: draw.choice([7, 8])]
    for rank in range(len(hosts)):
        place_of_host(exercise, rank, hosts, (rank % 3, rank // 3))
    hosts = ["n10", "n1", "n10", "n1"]  # one name is the beginning of the other
    full_names = ["n1.blue.org", "n1.red.org", "n1.blue.org", "n1.red.org"]
    for rank, place in enumerate([(0, 0), (1, 0), (0, 1), (1, 1)]):
        place_of_host(exercise, rank, hosts, place)
        place_of_host(exercise, rank, full_names, place)


@pytest.mark.ranks(3, 4)
def test_real_ranks_ask_each_other(exercise, rank, world_size):
    """ask_everybody: each rank finds its place without a launcher's variables."""
    host = ["zeus", "ada", "zeus", "ada"][rank]
    expected = [(0, 0), (1, 0), (0, 1), (1, 1)][rank]
    expect.equal(exercise.ask_everybody(host), expected, f"the place of rank {rank}")
