"""What one node of a job sees: names, interfaces, the port, versions, settings."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import ipaddress
import os
import platform
import re
import socket
import struct
import sys
import time
from dataclasses import dataclass, field

MEETING = 8.0  # seconds in which the nodes try to reach each other
DEFAULT_PORT = 29400  # of torchrun, where the endpoint names none
GREETING = b"workshop doctor\n"
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
SETTINGS = re.compile(r"(GLOO|NCCL|TORCH|OMP|CUDA)_\w+")
# These may well differ, or the launcher of this command has set them.
OWN = ("CUDA_VISIBLE_DEVICES",)


@dataclass(frozen=True)
class Place:
    """Where the nodes connect, as each got it. ``endpoint`` is HOST or HOST:PORT."""

    endpoint: str
    rdzv_id: str = ""
    nnodes: int = 0  # 0: not said

    @property
    def host(self) -> str:
        host = self.endpoint
        if re.fullmatch(r"\[.*\](:\d+)?|[^:]*:\d*", host):
            host = host.rpartition(":")[0] if not host.endswith("]") else host
        return host.strip("[]")

    @property
    def port(self) -> int:
        match = re.fullmatch(r"(?:\[.*\]|[^:]*):(\d+)", self.endpoint)
        return int(match[1]) if match else DEFAULT_PORT


@dataclass
class Report:
    """What one node sees.

    ``addresses``: of each name that was looked up, [] if it is unknown there.
    ``port``: what was found at the port of the endpoint, see :func:`try_port`.
    """

    host: str
    place: Place
    addresses: dict[str, list[str]]
    interfaces: dict[str, str]
    owns: bool
    port: str
    versions: dict[str, str]
    settings: dict[str, str] = field(default_factory=dict)


def look(
    place: Place, hosts: list[str], nnodes: int, patience: float = MEETING
) -> Report:
    """What this node sees; ``hosts``: the names of all nodes, as far as known."""
    own = socket.gethostname()
    names = dict.fromkeys([place.host, own, *hosts])
    addresses = {name: resolve(name) for name in names if name}
    local = {*interfaces().values(), *(a for a in addresses[own] if is_loopback(a))}
    there = addresses.get(place.host, [])
    owns = any(address in local or is_loopback(address) for address in there)
    port = try_port(place, owns, nnodes, patience) if there else ""
    return Report(
        host=own,
        place=place,
        addresses=addresses,
        interfaces=interfaces(),
        owns=owns,
        port=port,
        versions=versions(),
        settings={
            name: value
            for name, value in sorted(os.environ.items())
            if SETTINGS.fullmatch(name) and name not in OWN
        },
    )


def resolve(name: str) -> list[str]:
    """The addresses that this node knows under a name."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def interfaces() -> dict[str, str]:
    """The IPv4 address of each network interface; "" if it has none."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), 0x8915, request)  # SIOCGIFADDR
                found[name] = socket.inet_ntoa(answer[20:24])
            except OSError:
                found[name] = ""
    return found


def versions() -> dict[str, str]:
    """The programs whose versions should be the same on all nodes."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = "missing"
    return {
        "Python": platform.python_version(),
        "torch": torch,
        "the environment": sys.prefix,
    }


def try_port(place: Place, owns: bool, nnodes: int, patience: float) -> str:
    """Listen where the nodes are to meet, or go there.

    Returns:
        On the node that has the address: "free" or "taken". On the others: "reached",
        "other" if another program answered, "refused", "silent", or "unreachable".
    """
    if owns:
        return _listen(place.port, nnodes - 1, patience)
    return _connect(place.host, place.port, patience)


def _listen(port: int, others: int, patience: float) -> str:
    end = time.monotonic() + patience
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
            listener.listen()
        except OSError:
            return "taken"
        while others > 0:
            left = end - time.monotonic()
            if left <= 0:
                break
            listener.settimeout(left)
            with contextlib.suppress(OSError):
                guest, _ = listener.accept()
                with guest:
                    guest.sendall(GREETING)
                others -= 1
    return "free"


def _connect(host: str, port: int, patience: float) -> str:
    end, found = time.monotonic() + patience - 1, "silent"
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return found
        try:
            with socket.create_connection((host, port), left) as guest:
                guest.settimeout(2)
                return "reached" if guest.recv(64) == GREETING else "other"
        except ConnectionRefusedError:  # the other node may not listen yet
            found = "refused"
            time.sleep(0.1)
        except (TimeoutError, ConnectionResetError):
            found = "other" if found == "other" else "silent"
        except OSError:
            found = "unreachable"
            time.sleep(0.1)
