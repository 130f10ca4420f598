"""The cables between the nodes, as the cluster's PID 1 lays them.

A node's cable is a veth pair: ``eth0`` in the node, ``v3`` (of n3) at the bridge
``br0``. A delay puts a slow link in between: v3 =slow= p3, and q3, the other end of
p3, at the bridge.
"""

import contextlib
import os
import signal
import subprocess

from workshop.cluster.nodes import config, slow_link
from workshop.system import namespaces


def ip(*words: str, inside: int | None = None) -> None:
    """``ip WORDS`` here or in the network of the process `inside`.

    Raises:
        OSError: what ip or tc said.
    """
    _tool(["ip", *words], inside)


def _tool(command: list[str], inside: int | None) -> None:
    enter = ["nsenter", "-t", str(inside), "--net", "--"] if inside else []
    done = subprocess.run([*enter, *command], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")


class Network:
    """Every cable of the cluster, how fast and how long it is."""

    def __init__(self) -> None:
        self.rate: str | None = None
        self.delay = 0.0  # seconds between two nodes, one way
        self.far: dict[str, float] = {}  # nodes with a delay of their own, one way
        self._cables: dict[str, int] = {}  # node -> PID 1 of the node
        self._carriers: dict[str, int] = {}  # node -> process of its slow link

    def lay_bridge(self) -> None:
        ip("link", "set", "lo", "up")
        ip("link", "add", "br0", "type", "bridge")
        ip("addr", "add", f"{config.address(config.LOGIN)}/24", "dev", "br0")
        ip("link", "set", "br0", "up")

    def attach(self, node: str, pid: int) -> None:
        """Give the node whose PID 1 is `pid` its cable, as fast and long as all."""
        number = node[1:]
        # A machine that is switched on again has the card it had: with another address
        # the nodes that remember the old one would not reach it for some seconds.
        card = (
            "address",
            f"02:00:00:00:{int(number) >> 8:02x}:{int(number) & 255:02x}",
        )
        peer = ("type", "veth", "peer", "name", "eth0", *card, "netns", str(pid))
        ip("link", "add", f"v{number}", *peer)
        ip("link", "set", f"v{number}", "master", "br0", "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("addr", "add", f"{config.address(node)}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("route", "add", "default", "via", config.address(config.LOGIN)),
        ):
            ip(*words, inside=pid)
        self._cables[node] = pid
        self._limit(node)
        self._stretch(node)

    def detach(self, node: str) -> None:
        """Take the cable away: no other node sees how its connections end."""
        del self._cables[node]
        self._shorten(node)
        with contextlib.suppress(OSError):  # gone with a node that ended by itself
            ip("link", "del", f"v{node[1:]}")

    def plug(self, node: str, position: str) -> None:
        ip("link", "set", f"v{node[1:]}", position)

    def settings(self) -> dict:
        """What is set on the cables."""
        return {"rate": self.rate, "delay": self.delay, "far": self.far}

    def set_rate(self, rate: str | None) -> None:
        """Limit every cable, both ways; None: as fast as the machine is.

        Raises:
            OSError: tc refuses; then every cable is as fast as before.
        """
        before, self.rate = self.rate, rate
        try:
            for node in self._cables:
                self._limit(node)
        except OSError:
            self.rate = before
            for node in self._cables:
                self._limit(node)
            raise

    def _limit(self, node: str) -> None:
        for device, pid in ((f"v{node[1:]}", None), ("eth0", self._cables[node])):
            with contextlib.suppress(OSError):  # there was no limit
                _tool(["tc", "qdisc", "del", "dev", device, "root"], pid)
            if self.rate:
                bucket = f"tbf rate {self.rate} burst 256kb latency 50ms".split()
                _tool(["tc", "qdisc", "add", "dev", device, "root", *bucket], pid)

    def set_delay(self, seconds: float, alone: str | None = None) -> None:
        """Make any two nodes so far apart, one way; or one from all others."""
        if alone:
            self.far[alone] = seconds
        else:
            self.delay = seconds
            self.far.clear()
        for node in self._cables:
            self._shorten(node)
            self._stretch(node)

    def _stretch(self, node: str) -> None:
        # Each way between two nodes leads over two of these.
        seconds = self.far.get(node, self.delay / 2)
        if not seconds:
            return
        number = node[1:]
        ip("link", "add", f"p{number}", "type", "veth", "peer", "name", f"q{number}")
        ip("link", "set", f"p{number}", "up")
        ip("link", "set", f"q{number}", "master", "br0", "up")
        ip("link", "set", f"v{number}", "nomaster")
        child = os.fork()
        if child:
            self._carriers[node] = child
            return
        try:
            os.closerange(3, 1024)  # what belongs to the cluster's PID 1
            namespaces.set_name(f"slow-link {node}")
            slow_link.carry(seconds, f"v{number}", f"p{number}")
        finally:
            os._exit(1)

    def _shorten(self, node: str) -> None:
        carrier = self._carriers.pop(node, None)
        if not carrier:
            return
        os.kill(carrier, signal.SIGKILL)
        os.waitpid(carrier, 0)
        ip("link", "del", f"p{node[1:]}")
        with contextlib.suppress(OSError):  # gone with a node that ended by itself
            ip("link", "set", f"v{node[1:]}", "master", "br0")
