"""Checks of exercises/02_rank_arithmetic.py."""

import random

import pytest

from workshop.grader import expect, variants


def unequal_nodes(seed):
    """Five to seven nodes, no two neighbors with equally many processes."""
    draw = random.Random(seed)
    counts = [draw.randint(2, 6)]
    for _ in range(draw.randint(4, 6)):
        counts.append(draw.choice([n for n in range(1, 7) if n != counts[-1]]))
    return counts


def rank_of(node, local, counts, *, before=None, local_of=None, shift=0):
    """Ranks in blocks; the keywords are what goes wrong."""
    earlier = sum(counts[:node]) if before is None else before(node, counts)
    own = local if local_of is None else local_of(local, counts)
    return earlier + own + shift


MISTAKEN_RANKS = {
    "each node had as many processes as the first": {"before": lambda n, c: n * c[0]},
    "each node had as many processes as this one": {"before": lambda n, c: n * c[n]},
    "each node had as many processes as the largest": {
        "before": lambda n, c: n * max(c)
    },
    "each node had as many processes as the smallest": {
        "before": lambda n, c: n * min(c)
    },
    "each node had the average number of processes": {
        "before": lambda n, c: n * (sum(c) // len(c))
    },
    "all processes on this node came before this one, too": {
        "before": lambda n, c: sum(c[: n + 1])
    },
    "only the node just before this one counted": {
        "before": lambda n, c: c[n - 1] if n else 0
    },
    "the first node didn't count": {"before": lambda n, c: sum(c[1:n])},
    "the earlier nodes had no processes": {"before": lambda n, c: 0},
    "each earlier node had one process": {"before": lambda n, c: n},
    "the local rank didn't count": {"local_of": lambda own, c: 0},
    "ranks were dealt to the nodes in turn, and not in blocks": {
        "before": lambda n, c: n,
        "local_of": lambda own, c: own * len(c),
    },
    "the process itself were counted, too: ranks begin at 0": {"shift": 1},
    "one process too few were counted": {"shift": -1},
}


def place_of(
    rank,
    counts,
    *,
    sizes=list,
    inclusive=False,
    exchanged=False,
    dealt=False,
    own=None,
    first_node=0,
    first_local=0,
):
    """Go through the nodes; the keywords are what goes wrong."""
    node, local, seen = 0, rank, sizes(counts)
    while local >= seen[node] + inclusive:
        local -= seen[node]
        node += 1
    if dealt:
        node, local = rank % len(counts), rank // len(counts)
    local = local if own is None else own(rank, local)
    found = node + first_node, local + first_local
    return found[::-1] if exchanged else found


MANY = 100  # nodes, for a rule that knows no end
MISTAKEN_PLACES = {
    "each node had as many processes as the first": {"sizes": lambda c: [c[0]] * MANY},
    "each node had as many processes as the largest": {
        "sizes": lambda c: [max(c)] * MANY
    },
    "each node had as many processes as the smallest": {
        "sizes": lambda c: [min(c)] * MANY
    },
    "a node of 4 processes had the local ranks 0 to 4": {"inclusive": True},
    "local rank and node rank were exchanged": {"exchanged": True},
    "ranks were dealt to the nodes in turn, and not in blocks": {"dealt": True},
    "the local rank were the rank": {"own": lambda rank, local: rank},
    "the local rank were always 0": {"own": lambda rank, local: 0},
    "node ranks began at 1": {"first_node": 1},
    "local ranks began at 1": {"first_local": 1},
}


def in_order(host, rank, hosts):
    return list(dict.fromkeys(hosts)).index(host)


def earlier(host, rank, hosts):
    return hosts[:rank].count(host)


def place_by(
    rank, hosts, *, node=in_order, local=earlier, named=None, exchanged=False, first=0
):
    """By the host's name; the keywords are what goes wrong."""
    names = [host if named is None else named(host) for host in hosts]
    asked = names[rank], rank, names
    found = node(*asked) + first, local(*asked)
    return found[::-1] if exchanged else found


def changes(host, rank, hosts):
    return sum(hosts[r] != hosts[r - 1] for r in range(1, rank + 1))


MISTAKEN_HOSTS = {
    "hosts were numbered alphabetically": {
        "node": lambda host, rank, hosts: sorted(set(hosts)).index(host)
    },
    "hosts were numbered in reverse alphabetical order": {
        "node": lambda host, rank, hosts: sorted(set(hosts))[::-1].index(host)
    },
    "the node rank were the first rank of the host": {
        "node": lambda host, rank, hosts: hosts.index(host)
    },
    "all hosts of smaller ranks were counted, even this one": {
        "node": lambda host, rank, hosts: len(set(hosts[:rank]))
    },
    "all other hosts of smaller ranks were counted, also those that first appear "
    "after this host": {
        "node": lambda host, rank, hosts: len(set(hosts[:rank]) - {host})
    },
    "a host had a new number wherever it appears again": {"node": changes},
    "a host before this one were counted as often as it appears there": {
        "node": lambda host, rank, hosts: changes(host, hosts.index(host), hosts)
    },
    "node ranks began at 1": {"first": 1},
    "the ranks of a host were consecutive": {
        "local": lambda host, rank, hosts: rank - hosts.index(host)
    },
    "the process itself were counted, too: local ranks begin at 0": {
        "local": lambda host, rank, hosts: hosts[: rank + 1].count(host)
    },
    "all processes of the host were counted, and not those before this one": {
        "local": lambda host, rank, hosts: hosts.count(host)
    },
    "the processes of the host after this one were counted": {
        "local": lambda host, rank, hosts: hosts[rank + 1 :].count(host)
    },
    "the local rank were the rank": {"local": lambda host, rank, hosts: rank},
    "hosts were the same if their names begin alike": {
        "local": lambda host, rank, hosts: sum(
            other.startswith(host) for other in hosts[:rank]
        )
    },
    "hosts were the same if their names agree before the first dot": {
        "named": lambda host: host.partition(".")[0]
    },
    "local rank and node rank were exchanged": {"exchanged": True},
}


def host_lists(seed):
    """(hosts, place of each rank)."""
    draw = random.Random(seed)
    names = [f"h{n}" for n in draw.sample(range(100), 3)]
    dealt = (names * 3)[: draw.choice([7, 8])]
    four = [(0, 0), (1, 0), (0, 1), (1, 1)]
    return {
        "blocks": [
            (
                ["n10", "n10", "n10", "n2", "n7", "n7"],
                [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1)],
            )
        ],
        "in turn": [
            (dealt, [(rank % 3, rank // 3) for rank in range(len(dealt))]),
            # one name is the beginning of the other
            (["n10", "n1", "n10", "n1"], four),
            (["n1.blue.org", "n1.red.org", "n1.blue.org", "n1.red.org"], four),
            # a host comes again before another one first appears
            (["n4", "n9", "n4", "n6"], [(0, 0), (1, 0), (0, 1), (2, 0)]),
        ],
    }


def same_place(found, expected, what, cause=""):
    expect.equal(found, expected, what, cause=cause)
    kind = type(found).__name__
    expect.that(isinstance(found, tuple), f"{what} is a {kind}, expected a tuple")
    for number, wanted in zip(found, expected, strict=True):
        expect.number(number, wanted, what)


def check_hosts(exercise, seed, how):
    lists = host_lists(seed)
    every = [hosts for some in lists.values() for hosts, _ in some]
    cases = [(rank, hosts) for hosts in every for rank in range(len(hosts))]
    cause = variants.cause_in(exercise.place_by_host, cases, place_by, MISTAKEN_HOSTS)
    for hosts, places in lists[how]:
        for rank, expected in enumerate(places):
            passed = list(hosts)
            found = exercise.place_by_host(rank, passed)
            same_place(found, expected, f"place_by_host({rank}, {hosts})", cause)
            unchanged = passed == hosts
            expect.that(unchanged, f"place_by_host({rank}, ...) changed its list")


def all_places(counts):
    return [(node, local) for node, n in enumerate(counts) for local in range(n)]


# the first, the largest, the smallest and the average number are not the same
APART = [2, 5, 1, 6, 1]


def why_ranks(exercise, seed):
    """The cause of all wrong ranks, or ""."""
    cases = [
        (*place, counts)
        for counts in ([4, 4], APART, unequal_nodes(seed))
        for place in all_places(counts)
    ]
    return variants.cause_in(exercise.global_rank, cases, rank_of, MISTAKEN_RANKS)


def why_places(exercise, seed):
    """The cause of all wrong places, or ""."""
    cases = [
        (rank, counts)
        for counts in ([4, 4], APART, unequal_nodes(seed))
        for rank in range(sum(counts))
    ]
    return variants.cause_in(exercise.place, cases, place_of, MISTAKEN_PLACES)


@pytest.mark.ranks(1)
def test_two_nodes_of_four(exercise, seed):
    """global_rank: node 0 holds the ranks 0 to 3, node 1 holds 4 to 7."""
    cause = why_ranks(exercise, seed)
    for rank, (node, local) in enumerate(all_places([4, 4])):
        found = exercise.global_rank(node, local, [4, 4])
        what = f"global_rank({node}, {local}, [4, 4])"
        expect.equal(found, rank, what, cause=cause)
        expect.number(found, rank, what)


@pytest.mark.ranks(1)
def test_unequal_nodes(exercise, seed):
    """global_rank: the nodes before may have more or fewer processes than this one."""
    cause = why_ranks(exercise, seed)
    counts = unequal_nodes(seed)
    passed = list(counts)
    for rank, (node, local) in enumerate(all_places(counts)):
        found = exercise.global_rank(node, local, passed)
        what = f"global_rank({node}, {local}, {counts})"
        expect.equal(found, rank, what, cause=cause)
        expect.number(found, rank, what)
        expect.that(passed == counts, f"{what} changed its list: {passed}")


@pytest.mark.ranks(1)
def test_place_on_two_nodes_of_four(exercise, seed):
    """place: rank 5 of 2 x 4 is local rank 1 on node 1."""
    cause = why_places(exercise, seed)
    for rank, expected in enumerate(all_places([4, 4])):
        found = exercise.place(rank, [4, 4])
        same_place(found, expected, f"place({rank}, [4, 4])", cause)


@pytest.mark.ranks(1)
def test_place_on_unequal_nodes(exercise, seed):
    """place: unequal nodes, and no change to the list that was passed."""
    cause = why_places(exercise, seed)
    counts = unequal_nodes(seed)
    passed = list(counts)
    for rank, expected in enumerate(all_places(counts)):
        found = exercise.place(rank, passed)
        same_place(found, expected, f"place({rank}, {counts})", cause)
        expect.that(passed == counts, f"place({rank}, ...) changed its list: {passed}")


@pytest.mark.ranks(1)
def test_hosts_in_blocks(exercise, seed):
    """place_by_host: hosts count by first appearance, not alphabetically."""
    check_hosts(exercise, seed, "blocks")


@pytest.mark.ranks(1)
def test_hosts_in_turn(exercise, seed):
    """place_by_host: with --distribution=cyclic neighbors are on different hosts."""
    check_hosts(exercise, seed, "in turn")


@pytest.mark.ranks(3, 4)
def test_real_ranks_ask_each_other(exercise, rank, world_size):
    """ask_everybody: each rank finds its place without a launcher's variables."""
    host = ["zeus", "ada", "zeus", "ada"][rank]
    expected = [(0, 0), (1, 0), (0, 1), (1, 1)][rank]
    expect.equal(exercise.ask_everybody(host), expected, f"the place of rank {rank}")
