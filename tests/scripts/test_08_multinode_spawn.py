"""src/08_multinode_spawn.py on two nodes of one machine; what it refuses."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import pytest

from common.distributed import BadInput
from tests.launched import free_port
from tests.scripts.trainings import assert_same_bits, read, script, sentence

multinode_spawn = import_module("08_multinode_spawn")

NAME = "08_multinode_spawn.py"
EPOCH = re.compile(r"^\[node (\d) local (\d) rank (\d)\] Epoch (\d) \|", re.M)


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory):
    """(folders, processes) of 2 epochs on 2 nodes x 2 ranks, a folder for each node."""
    folders = [tmp_path_factory.mktemp(f"node{n}") for n in range(2)]
    shared = {
        "NNODES": "2",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(free_port()),
    }

    def node(rank):
        options = ["--nprocs", 2, "--batch-size", 16]
        return script(
            folders[rank], NAME, 2, 1, *options, NODE_RANK=str(rank), **shared
        )

    with ThreadPoolExecutor(2) as pool:
        return folders, list(pool.map(node, range(2)))


def test_ranks_are_numbered_node_by_node(two_nodes):
    _, processes = two_nodes
    assert [p.returncode for p in processes] == [0, 0], processes
    for node, process in enumerate(processes):
        places = {tuple(map(int, p)) for p in EPOCH.findall(process.stdout)}
        assert places == {
            (node, local, 2 * node + local, epoch)
            for local in range(2)
            for epoch in range(2)
        }


def test_only_rank_0_of_all_nodes_speaks_and_writes(two_nodes):
    folders, processes = two_nodes
    written = [sorted(path.name for path in folder.iterdir()) for folder in folders]
    assert written == [["snapshot.pt", "snapshot.pt.previous"], []]
    said = ["Test accuracy" in process.stdout for process in processes]
    assert said == [True, False]


def test_two_nodes_of_two_train_what_one_of_four_trains(two_nodes, tmp_path):
    """To the last bit; and a run resumes where other nodes see no snapshot."""
    folders, _ = two_nodes
    options = ["--nprocs", 4, "--batch-size", 16]
    done = script(tmp_path, "05_ddp_spawn.py", 2, 1, *options)
    assert done.returncode == 0, done.stderr
    one, two = tmp_path / "snapshot.pt", folders[0] / "snapshot.pt"
    assert_same_bits(read(one), read(two))


# -- bad input -----------------------------------------------------------------
@pytest.fixture
def environ(monkeypatch):
    """Sets the variables of a node; the others are not set."""

    def setter(**variables):
        for name in GOOD:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return setter


GOOD = {"NNODES": "3", "NODE_RANK": "1", "MASTER_ADDR": "localhost"}
GOOD["MASTER_PORT"] = "29500"


def test_the_environment_says_which_node_this_is(environ):
    environ(**GOOD)
    assert multinode_spawn.read_node() == (1, 3)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"NODE_RANK": None}, "NODE_RANK not set: each node needs"),
        ({"MASTER_ADDR": None, "MASTER_PORT": None}, "MASTER_ADDR, MASTER_PORT not"),
        ({"NNODES": None}, "NNODES not set"),
        ({"NODE_RANK": "3"}, "NODE_RANK=3 must be smaller than NNODES=3"),
        ({"NODE_RANK": "-1"}, "NODE_RANK='-1' is not a whole number"),
        ({"NNODES": "two"}, "NNODES='two' is not a whole number"),
        ({"NNODES": "0", "NODE_RANK": "0"}, "must be smaller than NNODES=0"),
    ],
    ids=str,
)
def test_variables_that_cannot_work_are_named(change, words, environ):
    both = {**GOOD, **change}
    environ(**{name: value for name, value in both.items() if value is not None})
    with pytest.raises(BadInput, match=re.escape(words)):
        multinode_spawn.read_node()


def test_a_refusal_is_one_line(tmp_path):
    done = script(tmp_path, NAME, 1, 1, NNODES="2", NODE_RANK="2")
    assert "MASTER_ADDR, MASTER_PORT not set" in sentence(done)


def test_port_that_is_taken_is_named(tmp_path):
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        variables = GOOD | {"NODE_RANK": "0", "MASTER_PORT": port}
        done = script(tmp_path, NAME, 1, 1, "--nprocs", 1, **variables)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert f"port: {port}" in done.stderr and "EADDRINUSE" in done.stderr
