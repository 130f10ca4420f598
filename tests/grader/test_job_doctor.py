"""workshop doctor --job: what it concludes from what nodes see, and what it refuses.

tests/jobs/test_never_meet.py lets it find the faults of the lesson on real nodes.
"""

import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from workshop.cli import cli
from workshop.doctor.judge import judge
from workshop.doctor.nodes import Place, Report, look, resolve

PLACE = Place("n1:29500", "7", 2)
VERSIONS = {"Python": "3.11", "torch": "2.13.0", "the environment": "/home/me/.venv"}


def node(number: int, **changes) -> Report:
    """A node of a job of two where all is well."""
    addresses = {"n1": ["10.0.0.1"], "n2": ["10.0.0.2"]}
    healthy = Report(
        host=f"n{number}",
        place=PLACE,
        addresses=addresses,
        interfaces={"lo": "127.0.0.1", "eth0": f"10.0.0.{number}"},
        owns=number == 1,
        port="free" if number == 1 else "reached",
        versions=VERSIONS,
    )
    return replace(healthy, **changes)


def test_nothing_is_found_where_nothing_is_wrong():
    assert judge([node(1), node(2)], 2) == []


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"place": Place("n1:29500", "8", 2)}, "rendezvous id differs, 7 on n1; 8 on"),
        ({"place": Place("n2:29500", "7", 2)}, "endpoint differs, n1:29500 on n1"),
        ({"place": Place("n1:29500", "7", 3)}, "number of nodes differs, 2 on n1; 3"),
        ({"port": "silent"}, "n2 gets no answer from n1:29500: a firewall"),
        ({"port": "refused"}, "n2 is refused at n1:29500"),
        ({"port": "other"}, "another program answers n2 at n1:29500: choose another"),
        ({"port": "unreachable"}, "n2 has no route to n1:29500"),
        (
            {"addresses": {"n1": [], "n2": ["10.0.0.2"]}},
            "n2 can't resolve the endpoint's host 'n1",
        ),
        (
            {"versions": {**VERSIONS, "torch": "2.12"}},
            "torch: 2.13.0 on n1; 2.12 on n2",
        ),
        ({"settings": {"NCCL_IB_DISABLE": "1"}}, "NCCL_IB_DISABLE differs, nothing on"),
        ({"settings": {"GLOO_SOCKET_IFNAME": "ib0"}}, "n2 has no interface ib0 (GLOO"),
        (
            {"settings": {"NCCL_SOCKET_IFNAME": "=eth"}},
            "n2 has no interface =eth (NCCL",
        ),
        (
            {"settings": {"NCCL_SOCKET_IFNAME": "lo"}},
            "lo on n2 leads to the node itself",
        ),
        (
            {"addresses": {"n1": ["10.0.0.1"], "n2": ["127.0.1.1"]}},
            "n2 resolves its own name to 127.0.1.1",
        ),
    ],
    ids=str,
)
def test_each_fault_of_one_node_is_one_line(changes, words):
    found = judge([node(1), node(2, **changes)], 2)
    assert len(found) == 1, found
    assert words in found[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"NCCL_SOCKET_IFNAME": "eth"},  # a prefix, to NCCL
        {"NCCL_SOCKET_IFNAME": "=eth0"},
        {"NCCL_SOCKET_IFNAME": "^docker,lo"},
        {"GLOO_SOCKET_IFNAME": "eth0"},
    ],
    ids=str,
)
def test_interfaces_are_read_as_nccl_and_gloo_read_them(settings):
    assert judge([node(n, settings=settings) for n in (1, 2)], 2) == []


def test_interfaces_may_have_other_names_on_other_nodes():
    """They are set where the rank starts, for this node."""
    other = {"lo": "127.0.0.1", "ens3": "10.0.0.2"}
    one = node(1, settings={"GLOO_SOCKET_IFNAME": "eth0"})
    two = node(2, interfaces=other, settings={"GLOO_SOCKET_IFNAME": "ens3"})
    assert judge([one, two], 2) == []


def test_meeting_place_outside_the_job_is_found():
    found = judge([node(1, owns=False, port="unreachable"), node(2)], 2)
    assert len(found) == 1 and "no node of this job has the address of n1" in found[0]


def test_node_that_does_not_answer_is_missed():
    assert judge([node(1)], 2)[0].startswith("only 1 of 2 nodes answered (n1)")
    assert judge([], 2)[0].startswith("only 0 of 2 nodes answered (none)")


def test_one_node_may_meet_at_localhost():
    place = Place("localhost:29500", "7", 1)
    alone = node(1, place=place, addresses={"localhost": ["127.0.0.1"]})
    assert judge([alone], 1) == []


@pytest.mark.parametrize(
    "text, host, port",
    [
        ("n1", "n1", 29400),
        ("n1:31000", "n1", 31000),
        ("10.0.0.1:5", "10.0.0.1", 5),
        ("[fd00::1]:31000", "fd00::1", 31000),
        ("fd00::1", "fd00::1", 29400),
    ],
)
def test_endpoint_is_read_as_torchrun_reads_it(text, host, port):
    assert (Place(text).host, Place(text).port) == (host, port)


def test_looking_at_this_machine():
    with socket.create_server(("", 0)) as listener:
        port = listener.getsockname()[1]
        seen = look(Place(f"localhost:{port}"), ["no-such-host.invalid"], 1)
    assert seen.host == socket.gethostname() and seen.owns
    assert seen.port == "taken"
    assert seen.interfaces["lo"] == "127.0.0.1"
    assert seen.addresses["no-such-host.invalid"] == []
    assert "127.0.0.1" in resolve("localhost")
    assert look(Place(f"localhost:{port}"), [], 1).port == "free"


# -- the command -----------------------------------------------------------------
@pytest.mark.parametrize(
    "words, said",
    [
        (["--job"], "no endpoint: give --rdzv-endpoint"),
        (["--job", "--rdzv-endpoint", "n1:0", "--nnodes", "2"], "'n1:0' is no HOST"),
        (["--job", "--rdzv-endpoint", "n1:99999"], "is no HOST:PORT"),
        (
            ["--job", "--rdzv-endpoint", "n1"],
            "this is no Slurm or PBS job: start it on",
        ),
        (["--nnodes", "2"], "belong to --job"),
        (["--job", "--nnodes", "0"], "--nnodes"),
    ],
    ids=str,
)
def test_command_that_cannot_work_is_one_sentence(words, said, monkeypatch, tmp_path):
    names = ("MASTER_ADDR", "PET_RDZV_ENDPOINT", "SLURM_JOB_ID", "PBS_NODEFILE")
    for name in (*names, "SLURM_NNODES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["doctor", *words])
    assert done.exit_code == 2
    assert said in done.output and done.output.count("\n") == 1, done.output


def test_one_node_by_hand(monkeypatch, tmp_path):
    for name in ("SLURM_JOB_ID", "PBS_NODEFILE", "GLOO_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    words = ["--job", "--rdzv-endpoint", "localhost:29599", "--nnodes", "1"]
    done = CliRunner().invoke(cli, ["doctor", *words])
    assert done.exit_code == 0, done.output
    where = f"Checked from {socket.gethostname()}"
    assert done.output == f"{where}: nothing keeps the nodes apart.\n"


@pytest.mark.cold("what is imported is the subject")
def test_it_answers_without_importing_torch():
    code = "import sys, workshop.doctor.job; sys.exit('torch' in sys.modules)"
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0
