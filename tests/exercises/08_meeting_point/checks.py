"""Checks of exercises/08_meeting_point.py."""

import ipaddress
import random

import pytest

from workshop.grader import expect

LO, DOCKER = "127.0.0.1/8", "172.17.0.1/16"


def nodes(exercise, *interfaces):
    """Reports of n1, n2 ..."""
    return [
        exercise.Report(f"n{number}", dict(names))
        for number, names in enumerate(interfaces, 1)
    ]


def networks(*texts):
    return [ipaddress.ip_network(text) for text in texts]


@pytest.mark.ranks(1, init=False)
def test_addresses_that_lead_nowhere(exercise):
    """usable: not the node itself, not 0.0.0.0, not a link-local address."""
    reachable = "10.1.0.11/16", "192.168.1.5/24", "172.17.0.1/16", "130.56.1.2/20"
    for text in (*reachable, "169.10.3.4/16"):
        expect.equal(exercise.usable(text), True, f"usable({text!r})")
    for text in ("127.0.0.1/8", "127.0.1.1/8", "169.254.3.4/16", "0.0.0.0/0"):
        expect.equal(exercise.usable(text), False, f"usable({text!r})")


@pytest.mark.ranks(1, init=False)
def test_network_that_both_nodes_are_on(exercise, seed):
    """common_networks: the usable one where n1 and n2 have different addresses."""
    part = random.Random(seed).randrange(2, 200)
    one = {"lo": LO, "docker0": DOCKER, "eth0": f"10.{part}.0.11/16"}
    two = {"lo": LO, "br0": DOCKER, "eth0": f"10.{part}.0.12/16"}
    one["usb0"], two["usb0"] = "169.254.3.1/16", "169.254.3.2/16"
    reports = nodes(exercise, one, two)
    found = exercise.common_networks(reports)
    expect.equal(
        found, networks(f"10.{part}.0.0/16"), f"the networks of {one} and {two}"
    )
    same = reports == nodes(exercise, one, two)
    expect.that(same, "common_networks changed the reports that it was given")


@pytest.mark.ranks(1, init=False)
def test_network_is_as_long_as_its_prefix_says(exercise):
    """common_networks: 10.1.0.1 and 10.1.3.2 share a network if the prefix is 16."""
    for first, second, wanted in (
        ("10.1.0.11/16", "10.1.3.12/16", ["10.1.0.0/16"]),
        ("10.1.16.1/20", "10.1.31.2/20", ["10.1.16.0/20"]),
        ("10.1.0.1/25", "10.1.0.200/25", []),
        ("10.1.0.1/16", "10.1.0.2/24", []),
    ):
        found = exercise.common_networks(
            nodes(exercise, {"eth0": first}, {"eth0": second})
        )
        expect.equal(found, networks(*wanted), f"the networks of {first} and {second}")


@pytest.mark.ranks(1, init=False)
def test_every_node_counts(exercise):
    """common_networks: a network doesn't count if one node isn't on it."""
    one = {"ib0": "10.9.0.1/24", "eth0": "10.1.0.1/16"}
    two = {"ib0": "10.9.0.2/24", "eth0": "10.1.0.2/16"}
    three = {"eth0": "10.1.0.3/16"}
    found = exercise.common_networks(nodes(exercise, one, two, three))
    expect.equal(found, networks("10.1.0.0/16"), "n3 has no ib0: the common networks")
    found = exercise.common_networks(nodes(exercise, one, two))
    both = networks("10.9.0.0/24", "10.1.0.0/16")
    expect.equal(found, both, "two nodes on two networks, in the order of n1")
    same = {"ib0": "10.9.0.1/24", "eth0": "10.1.0.3/16"}
    found = exercise.common_networks(nodes(exercise, one, two, same))
    wanted = networks("10.1.0.0/16")
    expect.equal(found, wanted, "n1 and n3 have the same address on ib0: the networks")
    found = exercise.common_networks(nodes(exercise, three | one, two, two))
    expect.equal(found, [], "n2 and n3 have the same addresses: the networks")
    twice = {"eth0": "10.1.0.1/16", "eth1": "10.1.0.2/16"}
    found = exercise.common_networks(nodes(exercise, twice, {"eth0": "10.2.0.1/16"}))
    expect.equal(found, [], "n1 has two addresses in a network, n2 none: the networks")
    found = exercise.common_networks(nodes(exercise, one))
    expect.equal(found, both, "a single node on two networks")


@pytest.mark.ranks(1, init=False)
def test_equal_names_are_no_equal_networks(exercise):
    """common_networks: networks are compared by their addresses, not by their names."""
    one, two = {"eth0": "10.1.0.1/24"}, {"ens3": "10.1.0.2/24"}
    found = exercise.common_networks(nodes(exercise, one, two))
    expect.equal(found, networks("10.1.0.0/24"), f"the networks of {one} and {two}")
    one = {"eth0": "10.1.0.1/24", "eth1": "10.2.0.1/24"}
    two = {"eth0": "10.2.0.2/24", "eth1": "10.3.0.2/24"}
    found = exercise.common_networks(nodes(exercise, one, two))
    expect.equal(found, networks("10.2.0.0/24"), f"the networks of {one} and {two}")


@pytest.mark.ranks(1, init=False)
def test_meeting_point_and_interfaces(exercise):
    """meeting_point: an address of the first node, and the interface of each node."""
    one = {"lo": LO, "docker0": DOCKER, "eth0": "10.1.0.11/24", "eth1": "10.2.0.11/24"}
    two = {"lo": LO, "docker0": DOCKER, "ens3": "10.2.0.2/24"}
    found = exercise.meeting_point(nodes(exercise, one, two))
    expected = ("10.2.0.11", {"n1": "eth1", "n2": "ens3"})
    expect.equal(found, expected, f"meeting_point of n1 {one} and n2 {two}")
    found = exercise.meeting_point(nodes(exercise, one))
    expected = ("172.17.0.1", {"n1": "docker0"})
    expect.equal(found, expected, f"meeting_point of n1 {one} alone")
    two["ib0"] = "10.1.0.10/24"
    found = exercise.meeting_point(nodes(exercise, one, two))
    expected = ("10.1.0.11", {"n1": "eth0", "n2": "ib0"})
    expect.equal(found, expected, f"meeting_point of n1 {one} and n2 {two}")


@pytest.mark.ranks(1, init=False)
def test_nodes_without_a_common_network_are_named(exercise):
    """meeting_point: without a common network, a ValueError names every host."""
    one = {"lo": LO, "docker0": DOCKER, "eth0": "10.1.0.1/24"}
    two = {"lo": LO, "docker0": DOCKER, "eth0": "10.2.0.1/24"}
    reports = nodes(exercise, one, two, one)
    words = ("n1", "n2", "n3")
    what = "meeting_point of three nodes, of which n2 shares lo and docker0 only"
    expect.raises(ValueError, exercise.meeting_point, reports, words=words, what=what)
