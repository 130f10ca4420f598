"""Checks of exercises/11_compose.yaml."""

import contextlib
import itertools
import posixpath

import pytest
from torch.distributed import run as torchrun

from workshop.grader import compose, expect

SCRIPT = "src/08_multinode_torchrun.py"
OF_TORCHRUN = ("--n", "--rdzv", "--master", "--standalone")


def said(node):
    """Where a node goes to meet the others."""
    host, port = node.meeting_point
    return f"{node.name} goes to {host}:{port}"


def emptied(node):
    """Which variables of the file are empty, as a half sentence."""
    names = " and ".join(f"${name}" for name in dict.fromkeys(node.unset))
    reason = "Docker Compose takes it from your own shell, not from `environment`"
    return f". {names} is empty: {reason}" if names else ""


def refused(node):
    """What torchrun says of options that it doesn't know, or ""."""
    complaint = []
    parser = torchrun.get_args_parser()
    parser.error = complaint.append  # else it prints its usage and exits
    words = [
        f"--{option}" if option in compose.FLAGS else f"--{option}={value}"
        for option, value in node.options.items()
    ]
    with contextlib.suppress(Exception, SystemExit):
        parser.parse_args([*words, "train.py"])
    return next((text for text in complaint if "unrecognized" in text), "")


@pytest.mark.ranks(1, init=False)
def test_file_has_two_nodes(exercise_path):
    """Two services, each of which starts torchrun for one of two nodes."""
    nodes = compose.read(exercise_path).nodes
    names = ", ".join(node.name for node in nodes)
    expect.that(len(nodes) == 2, f"there must be two services, but there are: {names}")
    for node in nodes:
        late = [word for word in node.script if word.startswith(OF_TORCHRUN)]
        expect.that(
            not late,
            f"{node.name} has {' '.join(late)} after the script: that is for the "
            "script, not for torchrun",
        )
        complaint = refused(node)
        expect.that(not complaint, f"torchrun of {node.name} says: {complaint}")
        expect.that(
            "standalone" not in node.options,
            f"{node.name} must not say --standalone: that makes it a job of one node, "
            "which waits for no other",
        )
        expect.that(
            node.option("nnodes", "1") in ("2", "2:2"),
            f"{node.name} must say --nnodes=2: with anything else it does not wait for "
            "one more node",
        )
        expect.that(
            node.option("nproc-per-node", "1") == "2",
            f"{node.name} must start two processes: --nproc-per-node=2",
        )
        expect.that(
            posixpath.normpath("".join(node.script[:1])) == SCRIPT,
            f"{node.name} must run {SCRIPT}",
        )


@pytest.mark.ranks(1, init=False)
def test_both_containers_can_start(exercise_path):
    """No container waits for the other's end, and no two want one port."""
    one, other = compose.read(exercise_path).nodes
    expect.that(
        other.name not in one.starts_after or one.name not in other.starts_after,
        f"{one.name} and {other.name} depend on each other, and neither can start",
    )
    for node, before in ((one, other), (other, one)):
        condition = node.starts_after.get(before.name)
        expect.that(
            condition != "service_completed_successfully",
            f"{node.name} starts when {before.name} has ended, and {before.name} waits "
            f"for {node.name}",
        )
        expect.that(
            condition != "service_healthy" or before.has_healthcheck,
            f"{node.name} starts when {before.name} is healthy, and {before.name} has "
            "no healthcheck that says so",
        )
    first, second = one.ports, other.ports
    twice = sorted(
        {
            port.removesuffix("/tcp")
            for (here, port), (there, same) in itertools.product(first, second)
            if port == same and (here == there or "" in (here, there))
        }
    )
    expect.that(
        not twice,
        f"both containers ask for port {', '.join(twice)} of the machine: the second "
        "one cannot start. Containers of one network need no published port",
    )


@pytest.mark.ranks(1, init=False)
def test_nodes_are_on_one_network(exercise_path):
    """The two containers can reach each other at all."""
    first, second = compose.read(exercise_path).nodes
    both_on_host = first.host_network and second.host_network
    where = [
        f"{node.name} is on "
        + ("the host" * node.host_network or " and ".join(sorted(node.networks)))
        + "no network" * (not node.host_network and not node.networks)
        for node in (first, second)
    ]
    expect.that(
        first.networks & second.networks or both_on_host,
        f"the containers cannot reach each other: {', '.join(where)}",
    )


@pytest.mark.ranks(1, init=False)
def test_each_node_finds_the_meeting_point(exercise_path):
    """The name of the meeting point is the same container for both nodes."""
    file = compose.read(exercise_path)
    places = {}
    for node in file.nodes:
        host, _ = node.meeting_point
        place = file.find(host, node)
        known = ", ".join(sorted(n for other in file.nodes for n in other.names))
        expect.that(
            place is not None,
            f"{node.name} connects to {host or 'no host'}, a name that doesn't resolve "
            f"in its container; the names are {known}{emptied(node)}",
        )
        called = " and ".join(other.name for other in file.called(host, node))
        expect.that(
            " and " not in called or host == node.hostname,
            f"{node.name} goes to {host}, which is a name of {called}: sometimes it "
            "finds the one, sometimes the other",
        )
        places[node.name] = place if isinstance(place, str) else place.name
    first, second = file.nodes
    expect.that(
        len(set(places.values())) == 1,
        "the nodes wait at two places: "
        + ", ".join(
            f"{node.name} at {node.meeting_point[0]}, which is "
            + ("itself" if places[node.name] == node.name else places[node.name])
            for node in (first, second)
        ),
    )
    ports = {node.meeting_point[1] for node in file.nodes}
    for node in file.nodes:
        port = node.meeting_point[1]
        expect.that(
            port.isdecimal(),
            f"{node.name} goes to the port {port or 'of no number'}{emptied(node)}",
        )
    expect.that(
        len(ports) == 1,
        f"the nodes wait at two ports: {said(first)}, {said(second)}",
    )


@pytest.mark.ranks(1, init=False)
def test_nodes_mean_the_same_job(exercise_path):
    """Both nodes use the same kind of rendezvous and the same id."""
    first, second = compose.read(exercise_path).nodes
    expect.equal(second.backend, first.backend, f"--rdzv-backend of {second.name}")
    if first.backend == compose.DYNAMIC:
        ids = [node.option("rdzv-id", "none") for node in (first, second)]
        empty = "--rdzv-id is empty, which torchrun refuses; Compose replaces $NAME"
        expect.that(all(ids), f"{empty} by a variable of your own shell")
        expect.that(
            ids[0] == ids[1],
            f"two jobs at one meeting point: {first.name} has --rdzv-id={ids[0]}, "
            f"{second.name} has --rdzv-id={ids[1]}, and each waits for one more node "
            "of its own job",
        )


@pytest.mark.ranks(1, init=False)
def test_nodes_can_be_told_apart(exercise_path):
    """The rendezvous can tell the two nodes apart."""
    file = compose.read(exercise_path)
    first, second = file.nodes
    if first.backend == compose.DYNAMIC:
        shared = first.home == second.home and first.pids != second.pids
        whose = "the machine" if first.host_network else first.home
        expect.that(
            not shared,
            f"both containers have the name and address of {whose}, and the same "
            "PIDs: torchrun's c10d counts both as one node and waits for another",
        )
        one_name = first.hostname is not None and first.hostname == second.hostname
        expect.that(
            not one_name,
            f"both containers call themselves {first.hostname}: with the same PIDs "
            "they are one node for torchrun's c10d, which waits for another",
        )
        return
    ranks = [node.option("node-rank", "0") for node in (first, second)]
    expect.that(
        sorted(ranks) == ["0", "1"],
        f"without c10d each node needs a --node-rank of its own, 0 and 1, not "
        f"{' and '.join(ranks)}",
    )
    host, _ = first.meeting_point
    place = file.find(host, first)
    head = first if ranks[0] == "0" else second
    expect.that(
        place in (head, compose.HOST),
        f"node rank 0 is {head.name}, and it listens there: {host} must be its name",
    )
