"""The four ways in which two nodes never meet, each for real on the practice cluster.

Each is tried with torchrun, as a user would see it, and then with
``workshop doctor --job`` in an allocation of the same two nodes.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.full

BLOCKED = 29577  # of n1, by the fixture below
PATIENCE = 12  # seconds that an agent waits for the other; 600 by default
BIN = Path(sys.executable).parent


class Fault(NamedTuple):
    """What is told to n1 and n2, and what torchrun and the doctor then say."""

    endpoint: str = "n1:29540"
    ids: tuple[str, str] = ("1", "1")
    interface: str = "eth0"
    limit: int = 60  # seconds; gloo waits five times as long to be called
    said: tuple[str, str] = ("", "")  # by torchrun on n1 and on n2, as patterns
    said_by_one: str = ""  # on the node of the rank that connects, whichever it is
    found: str = ""  # by the doctor


class Outcome(NamedTuple):
    """How an agent ended, and all that it and its rank printed."""

    status: int
    output: str


FAULTS = {
    "localhost as master": Fault(
        endpoint="localhost:29541",
        said=("RendezvousTimeoutError", "RendezvousTimeoutError"),
        found="the endpoint is the node itself (localhost on n1, n2)",
    ),
    "an interface that is not there": Fault(
        endpoint="n1:29542",
        interface="ib0",
        # whose rank is slow to start may first lose the store of the other's agent
        said=("Unable to find address for: ib0|connection to the C10d store",) * 2,
        said_by_one="Unable to find address for: ib0",
        found="n2 has no interface ib0 (GLOO_SOCKET_IFNAME): it has lo, eth0",
    ),
    "an interface that leads nowhere": Fault(
        endpoint="n1:29543",
        interface="lo",
        limit=10,
        said_by_one=r"connectFullMesh failed.*Connection refused, remote=\[127.0.0.1\]",
        found="GLOO_SOCKET_IFNAME=lo on n2 leads to the node itself",
    ),
    "port blocked": Fault(
        endpoint=f"n1:{BLOCKED}",
        said=(
            "RendezvousTimeoutError",
            rf"{PATIENCE}000ms while trying to connect to \(n1, {BLOCKED}\)",
        ),
        found=f"n2 gets no answer from n1:{BLOCKED}: a firewall is between",
    ),
    "different rdzv id": Fault(
        endpoint="n1:29544",
        ids=("job7", "job8"),
        # whoever has opened the store gives up; the other may just lose it
        said=("rendezvous.api.Rendezvous",) * 2,
        found="the rendezvous id differs, job7 on n1; job8 on n2",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def firewall(cluster):
    """n1 gives no answer at one port, as behind a firewall."""
    rules = (
        # rule 0 delivers to the node's own addresses; it must not come first
        "ip rule add pref 10 lookup local",
        f"ip rule add pref 5 iif eth0 ipproto tcp dport {BLOCKED} blackhole",
        "ip rule del pref 0",
    )
    cluster.run(["bash", "-c", " && ".join(rules)], node="n1", check=True)


BY_DAY = ("localhost as master", "port blocked")  # what people meet most


def torchruns(submit, fault: Fault, folder: Path) -> list:
    """The same two agents as in the lesson, with short timeouts."""

    def one(node: int):
        conf = f"join_timeout={PATIENCE},read_timeout={PATIENCE}"
        options = [
            *("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d"),
            f"--rdzv-endpoint={fault.endpoint}",
            f"--rdzv-id={fault.ids[node]}",
            f"--rdzv-conf={conf}",
        ]
        env = {"GLOO_SOCKET_IFNAME": fault.interface, "OMP_NUM_THREADS": "1"}
        words = [BIN / "torchrun", *options]
        words += ["src/02_hello_ranks.py", "--timeout", str(fault.limit)]
        # Into a file: a rank whose agent gave up may outlive it for a while, and
        # whoever reads a pipe would wait for it.
        log = folder / f"n{node + 1}.log"
        quiet = ["bash", "-c", 'log=$1; shift; exec "$@" >"$log" 2>&1', "-", log]
        done = submit.run([*quiet, *words], node=f"n{node + 1}", env=env, timeout=120)
        return Outcome(done.returncode, log.read_text(errors="replace"))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(2)))


def doctor(submit, fault: Fault):
    """What the doctor says in an allocation; by hand where the nodes are told apart."""
    env = {"GLOO_SOCKET_IFNAME": fault.interface}
    words = [BIN / "workshop", "doctor", "--job", "--rdzv-endpoint", fault.endpoint]
    if fault.ids[0] == fault.ids[1]:
        return submit.run(["salloc", "-Q", "--nodes=2", *words], env=env)

    def one(node: int):
        more = ["--rdzv-id", fault.ids[node], "--nnodes", "2"]
        return submit.run([*words, *more], node=f"n{node + 1}", env=env)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, range(2))
    assert first.stdout == second.stdout, "both judge the same reports"
    return first


def test_two_nodes_meet_and_the_doctor_finds_nothing(submit, tmp_path):
    """Else the tests below would prove nothing."""
    done = torchruns(submit, Fault(), tmp_path)
    assert [node.status for node in done] == [0, 0], done
    both = "".join(node.output for node in done)
    assert "rank 1 of 2 | node rank 1 |" in both
    healthy = doctor(submit, Fault())
    assert healthy.returncode == 0, healthy
    said = "Checked from n1, n2: nothing keeps the nodes apart.\n"
    assert healthy.stdout == said


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly)
        for name in FAULTS
    ],
)
def test_nodes_never_meet_and_the_doctor_says_why(name, submit, tmp_path):
    fault = FAULTS[name]
    done = torchruns(submit, fault, tmp_path)
    for node, words in zip(done, fault.said, strict=True):
        assert node.status == 1, node
        assert "sum of all ranks" not in node.output
        assert re.search(words, node.output), node.output[-3000:]
    outputs = "\n-- the other node\n".join(node.output[-3000:] for node in done)
    assert re.search(fault.said_by_one, outputs), outputs
    found = doctor(submit, fault)
    assert found.returncode == 1, found
    assert fault.found in found.stdout
    assert re.fullmatch(r"(- .+: .+\n)+", found.stdout), "a finding, then its cure"


def test_port_that_is_taken_is_named_once(submit, cluster):
    listen = (
        "import socket, time; s = socket.create_server(('', 29545)); time.sleep(99)"
    )
    other = cluster.popen([sys.executable, "-c", listen], node="n1")
    try:
        wait = "import socket, time\nwhile True:\n"
        wait += " try: socket.create_connection(('n1', 29545), 1); break\n"
        wait += " except OSError: time.sleep(0.1)\n"
        cluster.run([sys.executable, "-c", wait], node="n2", timeout=30, check=True)
        found = doctor(submit, Fault(endpoint="n1:29545"))
    finally:
        other.terminate()
        other.wait()
    assert found.returncode == 1
    assert found.stdout.startswith("- port 29545 is taken on n1: choose another")
    assert found.stdout.count("\n") == 1


def test_script_for_ssh_starts_both_nodes(submit, cluster, tmp_path):
    """docs/examples/08_by_ssh.sh, with an ssh that goes to the cluster's nodes."""
    ssh = tmp_path / "ssh"
    there = f'{BIN}/workshop cluster --state {cluster.state} run --node "$1"'
    ssh.write_text(f'#!/bin/bash\nexec {there} bash -c "$2"\n')
    ssh.chmod(0o755)
    done = subprocess.run(
        [submit.folder / "docs" / "examples" / "08_by_ssh.sh", "n1", "n2"],
        cwd="/",
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    ranks = re.findall(
        r"^\[node (\d) local (\d) rank (\d)\] Epoch 2", done.stdout, re.M
    )
    assert sorted(ranks) == [
        ("0", "0", "0"),
        ("0", "1", "1"),
        ("1", "0", "2"),
        ("1", "1", "3"),
    ]
    assert done.stdout.count("Test accuracy") == 1
