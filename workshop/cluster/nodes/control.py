"""How a process outside talks with the cluster's PID 1, and finds its processes."""

import json
import re
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

from workshop.cluster.nodes import config
from workshop.cluster.nodes.errors import ClusterError
from workshop.cluster.nodes.state import State

PATIENCE = 60.0  # seconds for any answer of the cluster, on a busy machine


class Control:
    """The control socket of the cluster in ``state``."""

    def __init__(self, state: State) -> None:
        self._files = state

    def ask(self, *request: object) -> Any:
        """The answer of PID 1; a ClusterError if it refuses or is silent."""
        self._files.must_be_up()
        try:
            with self._connect() as control:
                control.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(control.makefile("r").readline())
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"the practice cluster in {self._files.path} does not answer "
                f"({error}): end it with `workshop cluster down`"
            ) from None
        if "error" in answer:
            raise ClusterError(answer["error"])
        return answer["result"]

    def _connect(self) -> socket.socket:
        control = socket.socket(socket.AF_UNIX)
        control.settimeout(PATIENCE)
        control.connect(str(self._files.path / "control"))
        return control

    def pid_of_listener(self) -> int:
        """PID 1 of the cluster as this process sees it: the kernel translates."""
        with self._connect() as control:
            peer = control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return struct.unpack("3i", peer)[0]

    def pid_of_node(self, node: str) -> int:
        """PID 1 of a node as this process sees it."""
        nodes = self.ask("status")["nodes"]
        if node not in nodes:
            names = ", ".join([config.LOGIN, *nodes])
            raise ClusterError(f"there is no host {node!r}: there are {names}")
        if nodes[node]["pid"] is None:
            raise ClusterError(f"{node} is off: `workshop cluster on {node}` first")
        # NSpid: its number here, in the cluster, and in the node.
        parent = f"\nPPid:\t{self._files.must_be_up().pid}\n"
        ends = f"\t{nodes[node]['pid']}\t1\n"
        for path in Path("/proc").glob("[0-9]*/status"):
            with suppress(OSError):
                text = path.read_text()
                line = re.search(r"^NSpid:.*\n", text, re.MULTILINE)
                if parent in text and line and line[0].endswith(ends):
                    return int(path.parent.name)
        raise ClusterError(f"{node} has just ended: `workshop cluster status`")
