"""What the practice cluster can do, tried out by whoever runs this file.

    python powers_of_the_cluster.py DIR NAME     # one of the functions below

test_practice_cluster.py runs it as root and as an ordinary user, whose Python may
have nothing but its standard library. DIR is an empty directory of that user's.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from workshop.cluster.nodes import Cluster, ClusterError

PLACE = Path(sys.argv[1])
STATE = PLACE / "cluster"
PROBE = "import socket, sys, time; s = socket.socket(); s.settimeout(3)\n"


def try_out(function):
    """A failure, too, leaves no cluster behind."""
    with Cluster(STATE), Cluster(PLACE / "other"):
        function()


def wait_until(happened, seconds: float = 60.0):
    end = time.monotonic() + seconds
    while not (value := happened()):
        assert time.monotonic() < end, f"waited {seconds} s in vain"
        time.sleep(0.1)
    return value


def refused(function, *arguments, **options) -> str:
    try:
        function(*arguments, **options)
    except ClusterError as error:
        return str(error)
    raise AssertionError("this was to be refused")


def python(cluster, node: str, code: str, *arguments: str) -> str:
    words = [sys.executable, "-c", PROBE + code, *arguments]
    return cluster.run(words, node, timeout=60, check=True).stdout.strip()


def listen(cluster, node: str) -> subprocess.Popen:
    """A server on a node that echoes, slowly ended."""
    code = (
        "import socket\n"
        "s = socket.create_server(('', 5000)); print('ready', flush=True)\n"
        "while True:\n"
        "    c, _ = s.accept()\n"
        "    while data := c.recv(4096): c.sendall(data)\n"
    )
    words = [sys.executable, "-c", code]
    server = cluster.popen(words, node, stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "ready\n"
    return server


def reaches(cluster, node: str, other: str) -> bool:
    code = (
        "try: s.connect((sys.argv[1], 5000)); print('yes')\n"
        "except OSError: print('no')\n"
    )
    return python(cluster, node, code, other) == "yes"


def round_trip(cluster, node: str, other: str) -> float:
    code = (
        "s.connect((sys.argv[1], 5000)); times = []\n"
        "for _ in range(5):\n"
        "    t = time.monotonic(); s.sendall(b'x'); s.recv(1)\n"
        "    times.append(time.monotonic() - t)\n"
        "print(min(times))\n"
    )
    return float(python(cluster, node, code, other))


def idle_nodes(cluster) -> set[str]:
    words = ["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"]
    return set(cluster.run(words, timeout=60).stdout.split())


# What is tried out


def nodes_are_machines():
    """Own names, addresses, ports, processes and memory; one home for all."""
    with Cluster(STATE) as cluster:
        cluster.up(nodes=3, cpus=96, gpus=8, memory_mb=1_000_000)
        assert cluster.hosts == ["n1", "n2", "n3"]
        srun = ["srun", "--nodes=3", "--ntasks-per-node=1"]

        def on_all(command: str) -> list[str]:
            words = [*srun, "bash", "-c", command]
            return sorted(cluster.run(words, timeout=60, check=True).stdout.split())

        assert on_all("hostname") == ["n1", "n2", "n3"]
        assert on_all("hostname -i") == ["10.77.0.11", "10.77.0.12", "10.77.0.13"]
        assert on_all("cat /etc/hostname") == ["n1", "n2", "n3"]
        assert cluster.run(["hostname"]).stdout == "login\n"
        assert python(cluster, "n2", "print(socket.gethostbyname('n3'))") == (
            "10.77.0.13"
        )
        # One network card each, besides the loopback.
        assert on_all("ls -m /sys/class/net | tr -d ' '") == ["eth0,lo"] * 3
        # The same file in memory, the same port on each.
        assert on_all("echo $HOSTNAME > /dev/shm/x; sleep 0.3; cat /dev/shm/x") == [
            *cluster.hosts
        ]
        servers = [listen(cluster, node) for node in cluster.hosts]
        assert reaches(cluster, "n1", "n3") and not reaches(cluster, "n1", "login")
        for server in servers:
            server.kill()
            server.wait()
        # PID 1 is the node's own; other nodes' processes cannot be seen.
        assert on_all("ps -e | grep -c slurmd$") == ["1", "1", "1"]
        # The folder is everybody's, as a home of a cluster is.
        cluster.run(["bash", "-c", "echo here > note"], "n1", cwd=PLACE, check=True)
        assert cluster.run(["cat", "note"], "n2", cwd=PLACE).stdout == "here\n"
        size = cluster.run(["sinfo", "-h", "-o", "%D %c %m %G"]).stdout.split()
        assert size == ["3", "96", "1000000", "gpu:8"]
        gpus = on_all("echo $CUDA_VISIBLE_DEVICES")
        assert gpus == []  # none asked for
        words = [*srun, "--gpus-per-node=3", "printenv", "CUDA_VISIBLE_DEVICES"]
        assert cluster.run(words, timeout=60).stdout.split() == ["0,1,2"] * 3


def commands_pass_through():
    """Exit status, output, environment, folder, input; a timeout ends them."""
    os.environ["SLURM_JOB_ID"] = "77"  # as if called inside another job
    with Cluster(STATE) as cluster:
        cluster.up(nodes=1)
        done = cluster.run(["bash", "-c", "echo out; echo err >&2; exit 7"], "n1")
        assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
        assert "status 7 on login: oh" in refused(
            cluster.run, ["bash", "-c", "echo oh; exit 7"], check=True
        )
        assert cluster.run(["cat"], input="fed").stdout == "fed"
        assert cluster.run(["cat"]).stdout == ""
        done = cluster.run(
            ["bash", "-c", "echo $PWD $A $SLURM_JOB_ID"], env={"A": "b"}, cwd="/"
        )
        assert done.stdout == "/ b\n"
        try:
            cluster.run(["bash", "-c", "sleep 4321 & sleep 4321"], timeout=0.5)
            raise AssertionError("no timeout")
        except subprocess.TimeoutExpired:
            pass
        wait_until(lambda: cluster.run(["pgrep", "-f", "sleep 4321"]).returncode == 1)
        process = cluster.popen(["sleep", "4322"], "n1")
        wait_until(
            # -x: not what starts it, which does not end it yet when it is ended
            lambda: not cluster.run(["pgrep", "-fx", "sleep 4322"], "n1").returncode
        )
        process.terminate()
        process.wait()
        wait_until(lambda: cluster.run(["pgrep", "-f", "sleep 4322"], "n1").returncode)
        assert "there is no host 'n2': there are login, n1" in refused(
            cluster.run, ["true"], "n2"
        )


def power():
    """A node that is off is silent; switched on, it is as good as new."""
    with Cluster(STATE) as cluster:
        cluster.up(nodes=2)
        listen(cluster, "n2")
        # A connection that is open when the power fails hears not even its end.
        code = (
            "s.connect(('n2', 5000)); print('open', flush=True); sys.stdin.readline()\n"
            "try: s.sendall(b'x'); print(s.recv(1))\n"
            "except TimeoutError: print('silence')\n"
        )
        words = [sys.executable, "-c", PROBE + code]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        client = cluster.popen(words, "n1", **pipes)
        assert client.stdout.readline() == "open\n"
        cluster.off("n2")
        assert client.communicate("now\n", timeout=60)[0] == "silence\n"
        assert [node.power for node in cluster.status().nodes] == [True, False]
        assert "n2 is off: `workshop cluster on n2`" in refused(
            cluster.run, ["true"], "n2"
        )
        assert "n2 is off already" in refused(cluster.off, "n2")
        assert "n2 is off:" in refused(cluster.link, "n2", "down")
        assert "no node 'n3': there are n1 to n2" in refused(cluster.off, "n3")
        # What is set while it is off holds when it comes.
        cluster.delay("20ms")
        cluster.rate("1gbit")
        cluster.on("n2")
        assert "n2 is on already" in refused(cluster.on, "n2")
        listen(cluster, "n2")
        assert round_trip(cluster, "n1", "n2") >= 0.04
        for node in cluster.hosts:
            shown = cluster.run(["tc", "qdisc", "show", "dev", "eth0"], node).stdout
            assert "tbf" in shown and "rate 1Gbit" in shown
        wait_until(lambda: idle_nodes(cluster) == {"n1", "n2"})
        words = ["srun", "--nodes=2", "--ntasks-per-node=1", "hostname"]
        assert sorted(cluster.run(words, timeout=60).stdout.split()) == ["n1", "n2"]
        # A node that ends by itself is off, and the rest lives on.
        os.kill(int(cluster.command(["true"], "n2")[2]), signal.SIGKILL)
        wait_until(lambda: not cluster.status().nodes[1].power)
        cluster.on("n2")
        wait_until(lambda: idle_nodes(cluster) == {"n1", "n2"})


def cable_and_network():
    """A pulled cable, a slow one, a long one."""
    with Cluster(STATE) as cluster:
        cluster.up(nodes=3)
        for node in cluster.hosts:
            listen(cluster, node)
        cluster.link("n2", "down")
        assert [node.link for node in cluster.status().nodes] == [True, False, True]
        assert not reaches(cluster, "n1", "n2") and reaches(cluster, "n1", "n3")
        assert cluster.run(["hostname"], "n2").stdout == "n2\n"  # it lives on
        cluster.link("n2", "up")
        wait_until(lambda: reaches(cluster, "n1", "n2"))
        quick = round_trip(cluster, "n1", "n3")
        cluster.delay("30ms")
        assert cluster.status().delay == 0.03
        assert round_trip(cluster, "n1", "n3") >= 0.06 > quick
        cluster.link("n2", "down")
        cluster.delay("40ms")  # does not plug it in
        assert not reaches(cluster, "n1", "n2")
        cluster.link("n2", "up")
        wait_until(lambda: reaches(cluster, "n1", "n2"))
        assert round_trip(cluster, "n1", "n2") >= 0.08
        cluster.delay("off")
        cluster.delay("30ms", "n3")  # one long cable
        assert (cluster.status().delay, cluster.status().far) == (0, {"n3": 0.03})
        assert round_trip(cluster, "n1", "n3") >= 0.06 > round_trip(cluster, "n1", "n2")
        assert "no node 'n9': there are n1 to n3" in refused(cluster.delay, "1ms", "n9")
        cluster.delay("off")
        assert cluster.status().far == {}
        wait_until(lambda: round_trip(cluster, "n1", "n3") < 0.06)
        cluster.rate("100mbit")
        assert cluster.status().rate == "100mbit"
        cluster.rate("off")
        shown = cluster.run(["tc", "qdisc", "show", "dev", "eth0"], "n1").stdout
        assert "tbf" not in shown
        assert "such as" not in refused(cluster.rate, "fast")
        for wrong in ("0ms", "1", "1m", "-1ms", "11s"):
            assert f"'{wrong}' is no delay" in refused(cluster.delay, wrong)
        for wrong in ("0gbit", "1", "1 gbit", "1GB"):
            assert f"'{wrong}' is no rate" in refused(cluster.rate, wrong)
        assert "up or down" in refused(cluster.link, "n1", "sideways")


if __name__ == "__main__":
    try_out(globals()[sys.argv[2]])
