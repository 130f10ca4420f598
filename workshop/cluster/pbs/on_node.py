"""Becomes a task: started on a node, it asks the rehearsal what to run, and is it.

    unshare --mount python on_node.py SOCKET TASK

The answer comes with the task's stdin, stdout and stderr. The rehearsal learns from
the connection which process this is, and later ends whatever is in its session. Both
messages are defined here, because a node can import nothing of the workshop.
"""

from __future__ import annotations

import array
import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass

NOT_EXECUTABLE = 254  # exit status of a task whose program can't be run


@dataclass(frozen=True)
class Started:
    """What the process says first: which task it is to become."""

    task: int  # its number

    def as_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


@dataclass(frozen=True)
class Order:
    """What it becomes; its stdin, stdout and stderr come with this line."""

    program: str  # a file
    argv: list[str]  # the name it is called by, then its arguments
    env: dict[str, str]
    cwd: str
    umask: int
    mounts: list[tuple[str, str]]  # (what, where), bound before it starts

    def as_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Order:
        return cls(**json.loads(line))


def receive(connection: socket.socket) -> tuple[Order, array.array]:
    """The order, and the file descriptors that came with it."""
    text, descriptors = b"", array.array("i")
    while not text.endswith(b"\n"):
        part, extra, _, _ = connection.recvmsg(2**16, 256)
        if not part:
            sys.exit(255)
        text += part
        for _, kind, data in extra:
            if kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data)
    return Order.from_line(text), descriptors


def main() -> None:
    os.setsid()  # a session of its own, by which it is found again
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        connection.sendall(Started(int(sys.argv[2])).as_line())
        order, descriptors = receive(connection)
    for source, target in order.mounts:
        subprocess.run(["mount", "--bind", source, target], check=True)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.umask(order.umask)
    os.chdir(order.cwd)
    try:
        os.execve(order.program, order.argv, order.env)
    except OSError as error:
        print(f"{order.program}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(NOT_EXECUTABLE)


if __name__ == "__main__":
    main()
