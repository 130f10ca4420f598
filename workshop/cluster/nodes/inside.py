"""PID 1 of the cluster, which is also its login host, and PID 1 of each node.

``cluster.py`` starts this module with a folder for STATE in new namespaces, with a
socket as standard input. There this process says "ready", or one sentence
about what went wrong; when the other end closes it before "stay" has come, the
cluster ends with it. From then on it does what is asked at STATE/control.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from workshop.cluster.nodes import config
from workshop.cluster.nodes.network import Network
from workshop.system import namespaces, protection

PATIENCE = 30.0  # seconds for the daemons to answer, on a busy machine


class Refused(Exception):
    """What was asked cannot be done: one sentence."""


class Login:
    """The login host: munged, slurmctld, the bridge, and the nodes' power switches."""

    def __init__(self, state: Path, nodes: int) -> None:
        self.state = state
        self.names = config.node_names(nodes)
        self.network = Network()
        self.pids: dict[str, int] = {}  # of the nodes that are on: their PID 1
        self.cut: set[str] = set()  # nodes whose cable is out
        self._waiting: dict[str, socket.socket] = {}  # nodes that wait for "go"

    def start(self) -> None:
        """Everything up to nodes that Slurm calls idle."""
        namespaces.own_files(config.LOGIN, self.state)
        self.network.lay_bridge()
        self._start_munged()
        log = (self.state / "log" / "slurmctld.out").open("ab")
        controller = subprocess.Popen(
            ["slurmctld", "-D"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        for name in self.names:
            self._boot(name)
        # A slurmd that comes first fails, and tries again only a second later.
        wait_until(lambda: answers(config.SLURMCTLD_PORT), controller, "slurmctld")
        for name in self.names:
            self._start_slurmd(name)
        wait_until(self._all_idle, controller, "the nodes")

    def _start_munged(self) -> None:
        folder = self.state / "munge"
        done = subprocess.run(
            [
                *("munged", "--force", f"--key-file={folder}/key"),
                *(f"--socket={folder}/sock", f"--pid-file={folder}/pid"),
                *(f"--log-file={self.state}/log/munged.log", f"--seed={folder}/seed"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Refused(f"munged did not start: {last}")

    def _all_idle(self) -> bool:
        command = ["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"]
        done = subprocess.run(command, capture_output=True, text=True)
        return len(done.stdout.split()) == len(self.names)

    # Nodes

    def _boot(self, name: str) -> None:
        """PID 1 of a node, and its cable; its slurmd waits for a word."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(PATIENCE)
        keeper = os.fork()
        if keeper == 0:
            be_keeper(name, self.state, theirs)
        theirs.close()
        self.pids[name] = int(heard(ours, name, "pid"))
        os.waitpid(keeper, 0)
        self.network.attach(name, self.pids[name])
        self._waiting[name] = ours

    def _start_slurmd(self, name: str) -> None:
        with self._waiting.pop(name) as node:
            heard(node, name, "ready")
            node.sendall(b"go")

    def on(self, name: str) -> None:
        self._must_be_a_node(name)
        if name in self.pids:
            raise Refused(f"{name} is on already")
        self._boot(name)
        self._start_slurmd(name)

    def off(self, name: str) -> None:
        """As if the power failed: the cable first, so that no peer hears of it."""
        self._must_be_a_node(name)
        if name not in self.pids:
            raise Refused(f"{name} is off already")
        pid = self.pids.pop(name)
        self.cut.discard(name)
        self.network.detach(name)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def link(self, name: str, position: str) -> None:
        self._must_be_on(name)
        self.network.plug(name, position)
        if position == "down":
            self.cut.add(name)
        else:
            self.cut.discard(name)

    def rate(self, rate: str | None) -> None:
        self.network.set_rate(rate)

    def delay(self, seconds: float, name: str | None = None) -> None:
        self._must_be_a_node(name or self.names[0])
        self.network.set_delay(seconds, name)

    def status(self) -> dict:
        nodes = {
            name: {"pid": self.pids.get(name), "link": name not in self.cut}
            for name in self.names
        }
        return {"nodes": nodes} | self.network.settings()

    def _must_be_a_node(self, name: str) -> None:
        if name not in self.names:
            raise Refused(f"there is no node {name!r}: there are {self._all()}")

    def _must_be_on(self, name: str) -> None:
        self._must_be_a_node(name)
        if name not in self.pids:
            raise Refused(f"{name} is off: `workshop cluster on {name}` first")

    def _all(self) -> str:
        first, last = self.names[0], self.names[-1]
        return first if first == last else f"{first} to {last}"

    # What is asked for

    def serve(self, control: socket.socket, parent: socket.socket) -> None:
        """Answer one request after the other, forever."""
        watched: list[socket.socket] = [control, parent]
        while True:
            for ready in select.select(watched, [], [], 1.0)[0]:
                if ready is control:
                    self._serve_one(control)
                elif parent.recv(16) == b"stay":
                    watched.remove(parent)
                    parent.close()
                else:  # the process that wanted this cluster is gone
                    return
            self._reap()

    def _serve_one(self, control: socket.socket) -> None:
        connection, _ = control.accept()
        with connection:
            connection.settimeout(5)
            try:
                request = json.loads(connection.makefile("r").readline())
                answer = {"result": self._do(*request)}
            except Refused as error:
                answer = {"error": str(error)}
            except OSError as error:
                answer = {"error": error.strerror or str(error)}
            except ValueError:  # no request of ours
                return
            connection.sendall(json.dumps(answer).encode() + b"\n")

    def _do(self, what: str, *arguments) -> object:
        powers = (self.on, self.off, self.link, self.rate, self.delay, self.status)
        power = {power.__name__: power for power in powers}[what]
        return power(*arguments)

    def _reap(self) -> None:
        """Orphans of this host; a node whose PID 1 was killed is off."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for name in [name for name, one in self.pids.items() if one == pid]:
                del self.pids[name]
                self.network.detach(name)


def be_keeper(name: str, state: Path, word: socket.socket) -> None:
    """Make a node's namespaces and its PID 1, tell the PID, and go."""
    try:
        namespaces.unshare()
        told, telling = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(telling)
            os.read(told, 1)  # until the keeper has told the PID, and is gone
            os.close(told)
            be_node(name, state, word)
        word.sendall(f"pid {child}".encode())  # as the cluster's PID 1 sees it
    except OSError as error:
        word.sendall(f"error {error}".encode())
    finally:
        os._exit(0)


def be_node(name: str, state: Path, word: socket.socket) -> None:
    """PID 1 of a node: slurmd once the word is given, then nothing but patience."""
    try:
        namespaces.set_name(f"node {name}")
        log = (state / "log" / f"{name}.log").open("ab")
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        namespaces.own_proc()
        namespaces.own_files(name, state)
        word.sendall(b"ready")
        word.recv(16)  # "go"
        os.closerange(3, 1024)  # what belongs to the cluster's PID 1
        command = ["slurmd", "-D", "-N", name]
        subprocess.Popen(command, stdin=subprocess.DEVNULL)
        while True:  # the node outlives its slurmd
            try:
                os.wait()
            except ChildProcessError:
                time.sleep(0.2)
    except OSError as error:
        word.sendall(f"error {error}".encode())
    finally:
        os._exit(1)


def heard(node: socket.socket, name: str, expected: str) -> str:
    """What follows the expected first word of the node's message.

    Raises:
        Refused: it ended, or says what went wrong.
    """
    word, _, rest = node.recv(4096).decode().partition(" ")
    if word != expected:
        raise Refused(f"{name} did not start: {rest or 'it ended'}")
    return rest


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((config.address(config.LOGIN), port)) == 0


def wait_until(happened, controller: subprocess.Popen, what: str) -> None:
    """Poll until `happened()`.

    Raises:
        Refused: the controller ended, or it takes too long.
    """
    end = time.monotonic() + PATIENCE
    while not happened():
        if controller.poll() is not None:
            raise Refused("slurmctld did not start")
        if time.monotonic() > end:
            raise Refused(f"{what} did not answer within {PATIENCE:.0f} s")
        time.sleep(0.02)


def main() -> None:
    state, nodes = Path(sys.argv[1]), int(sys.argv[2])
    parent = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    namespaces.plain_signals()
    namespaces.set_name("practice-cluster")
    os.environ["SLURM_CONF"] = str(state / "slurm" / "slurm.conf")
    control = socket.socket(socket.AF_UNIX)
    control.bind(str(state / "control"))
    control.listen(16)
    login = Login(state, nodes)
    try:
        if sys.argv[3:4] == ["protected"]:
            protection.protect(str(state), sys.argv[4:])
        login.start()
    except Refused as error:
        parent.sendall(f"{error}\n".encode())
        return
    except OSError as error:
        parent.sendall(f"{error.strerror or error}\n".encode())
        return
    parent.sendall(b"ready\n")
    login.serve(control, parent)


if __name__ == "__main__":
    main()
