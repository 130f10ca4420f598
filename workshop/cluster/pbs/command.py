"""One command of the rehearsal, as users start it: qsub, qstat, pbsdsh, ssh...

    python command.py SOCKET NAME [ARGUMENTS...]

It tells the rehearsal what was typed, where and in which environment, and prints the
answer. A SIGTERM is passed on, and ends the command at once: what that does to the
tasks of a job is the rehearsal's affair. It runs where nothing of the workshop can be
imported, so both messages are defined here, and the rehearsal imports them.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import sys
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Typed:
    """A command as somebody typed it; the rehearsal gets its descriptors, too."""

    command: str  # its name, such as qsub
    argv: list[str]  # what follows the name
    cwd: str
    env: dict[str, str]
    host: str

    def as_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


@dataclass(frozen=True)
class Reply:
    """What the command does next; the last one ends it, or makes it a program."""

    out: str = ""  # to print on stdout
    err: str = ""  # and on stderr
    become: list[str] | None = None  # a program and its arguments
    status: int | None = None  # to exit with

    def as_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: str) -> Reply:
        return cls(**json.loads(line))


def main() -> None:
    path, name, *argv = sys.argv[1:]
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        sys.exit(f"{name}: the rehearsal of PBS is over (no answer at {path})")

    def pass_on(number, _frame):
        connection.sendall(b'{"signal": %d}\n' % number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, pass_on)
    typed = Typed(name, argv, os.getcwd(), dict(os.environ), socket.gethostname())
    message = typed.as_line()
    # qsub reads a script there, and what ssh starts reads and writes there
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    sent = connection.sendmsg([message], rights)
    if sent < len(message):  # else the answer may be there, and the connection over
        connection.sendall(message[sent:])
    with connection.makefile() as answers:
        for line in answers:
            reply = Reply.from_line(line)
            print(reply.out, end="", flush=True)
            print(reply.err, end="", file=sys.stderr, flush=True)
            if reply.become is not None:
                os.execvp(reply.become[0], reply.become)
            if reply.status is not None:
                sys.exit(reply.status)
    sys.exit(f"{name}: the rehearsal of PBS has ended")


if __name__ == "__main__":
    main()
