"""How a practice cluster begins and ends, tried out by whoever runs this file.

    python life_of_the_cluster.py DIR NAME       # one of the functions below

test_practice_cluster.py copies it beside powers_of_the_cluster.py and runs it like
that one.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from powers_of_the_cluster import PLACE, STATE, refused, try_out, wait_until

from workshop.cluster.nodes import Cluster, ClusterError


def processes(state: Path) -> list[str]:
    """The command lines that name a cluster's directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if int(path.parent.name) != os.getpid() and any(str(state) in w for w in words):
            found.append(" ".join(words))
    return found


def two_and_none():
    """Side by side without meeting; after down nothing is left."""
    interfaces = sorted(name for _, name in socket.if_nameindex())
    one, other = Cluster(STATE), Cluster(PLACE / "other")
    assert "no practice cluster is up" in refused(one.down)
    assert "no practice cluster is up" in refused(one.run, ["true"])
    assert "no practice cluster is up" in refused(one.status)
    one.up(nodes=2)
    again = Cluster(STATE)
    assert "a practice cluster of 2 nodes is already up" in refused(again.up, nodes=3)
    other.up(nodes=3)
    assert (len(one.status().nodes), len(other.status().nodes)) == (2, 3)
    one.off("n2")
    assert [node.power for node in other.status().nodes] == [True] * 3
    assert processes(one.state) and processes(other.state)
    # The end of this command is not waited for: it dies with the cluster.
    orphan = one.popen(["setsid", "sleep", "4323"], "n1")
    assert one.down() and not one.state.exists()
    orphan.wait()
    assert processes(one.state) == []
    assert other.run(["srun", "--nodes=3", "hostname"], timeout=60).returncode == 0
    stranger = Cluster(other.state)  # not the object that called up
    assert stranger.down()
    assert processes(other.state) == [] and not other.state.exists()
    assert str(PLACE) not in Path("/proc/mounts").read_text()
    assert sorted(name for _, name in socket.if_nameindex()) == interfaces
    assert "no practice cluster is up" in refused(stranger.down)


def stays() -> bool:
    """Whether there is a cluster that was told to stay; another would end meanwhile."""
    for seconds in (0, 2):
        time.sleep(seconds)
        try:
            Cluster(STATE).status()
        except ClusterError:
            return False
    return True


def interruption():
    """Ctrl-C or SIGKILL at any moment of `up` leaves no process behind."""
    code = "from workshop.cluster.nodes import Cluster; "
    code += f"Cluster({str(STATE)!r}).up(nodes=2)"
    for kind in (signal.SIGINT, signal.SIGKILL):
        for moment in (0.02, 0.08, 0.15, 0.25, 0.4):
            up = subprocess.Popen(
                [sys.executable, "-c", code], stderr=subprocess.PIPE, cwd=sys.path[0]
            )
            wait_until(lambda: STATE.exists() and list(STATE.iterdir()))
            time.sleep(moment)
            up.send_signal(kind)
            up.communicate(timeout=60)
            if up.returncode == 0 or stays():  # it was quicker, maybe by a little
                assert Cluster(STATE).down()
            wait_until(lambda: not processes(STATE))
            if kind == signal.SIGINT:
                assert not STATE.exists()
            elif STATE.exists():
                assert not Cluster(STATE).down()
    with Cluster(STATE) as cluster:
        cluster.up(nodes=1)


def crash_and_restart():
    """A cluster that ended by itself, or with the machine, is known to be gone."""
    cluster = Cluster(STATE)
    cluster.up(nodes=2)
    facts = json.loads((STATE / "cluster.json").read_text())
    os.kill(facts["first"]["pid"], signal.SIGKILL)
    wait_until(lambda: not processes(STATE))
    assert "no practice cluster is up" in refused(Cluster(STATE).status)
    with Cluster(STATE) as again:
        again.up(nodes=1)
        assert again.hosts == ["n1"]
        living = json.loads((STATE / "cluster.json").read_text())
    # The same process number after a restart of the machine is another process.
    for change in ({"boot": "another"}, {"started": "1"}):
        STATE.mkdir()
        first = {**living["first"], "pid": os.getpid(), **change}
        pretended = {**living, "first": first}
        (STATE / "cluster.json").write_text(json.dumps(pretended))
        assert Cluster(STATE).down() is False
        assert not STATE.exists()


def places():
    """Where it may not live, and that it removes nothing of anybody else."""
    foreign = PLACE / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("years of work")
    assert "not a practice cluster's" in refused(Cluster(foreign).up)
    assert "no practice cluster is up" in refused(Cluster(foreign).down)
    assert "cannot use" in refused(Cluster(foreign / "thesis.txt").up)
    assert "more than 70 letters" in refused(Cluster(PLACE / ("x" * 70)).up)
    assert "letters, digits" in refused(Cluster(PLACE / "a b").up)
    mine = PLACE / "mine"
    mine.mkdir()
    with Cluster(mine) as cluster:
        cluster.up(nodes=1)
        (mine / "thesis.txt").write_text("years of work")
        (mine / "log" / "thesis.txt").write_text("a copy")
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]
    assert (foreign / "thesis.txt").read_text() == "years of work"
    for wrong in ({"nodes": 0}, {"nodes": 65}, {"cpus": 0}, {"gpus": -1}):
        assert "must be" in refused(Cluster(STATE).up, **wrong)
    assert not STATE.exists()


def inside():
    """Cluster commands inside a cluster are refused instead of taken for a crash."""
    code = (
        "from workshop.cluster.nodes import *\n"
        "for act in ('up', 'down', 'status'):\n"
        "    try: getattr(Cluster(), act)(); print('done')\n"
        "    except ClusterError as error: print(error)\n"
    )
    with Cluster(STATE) as cluster:
        cluster.up(nodes=1)
        words = [sys.executable, "-c", code]
        for node in ("login", "n1"):
            shown = cluster.run(words, node, cwd=sys.path[0], check=True).stdout
            assert shown.count("inside a practice cluster") == 3, shown
        assert cluster.run(["true"]).returncode == 0


if __name__ == "__main__":
    try_out(globals()[sys.argv[2]])
