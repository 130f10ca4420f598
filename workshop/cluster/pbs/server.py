"""The server of the rehearsal: it takes commands, and runs jobs on hosts."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .call import Call
from .command import Typed
from .commands import COMMANDS
from .jobs import Delays
from .on_node import Started
from .placement import Amount
from .scheduler import Scheduler
from .tasks import Closed, Tasks

COMMAND = Path(__file__).with_name("command.py")


class PbsError(Exception):
    """A command of the rehearsal failed; what it printed."""

    def __init__(self, done: subprocess.CompletedProcess[str]):
        super().__init__(done.stderr.strip() or f"exit status {done.returncode}")
        self.status = done.returncode


class Rehearsal(Scheduler):
    """A server and the hosts ``hosts`` of a cluster; use it in a ``with`` statement.

    Each host offers ``ncpus``, ``ngpus`` (0: the resource is unknown, as in OpenPBS as
    it comes) and ``mem_mb``, whatever the machine really has. ``home`` is the home of
    the user, in which jobs start. With ``ssh``, hosts can be reached by an `ssh` that
    runs commands as an sshd does. With a ``domain`` such as ``hpc.test``, the node file
    has full names. Jobs are counted from the number in the file ``number_file``.
    """

    def __init__(
        self,
        cluster,
        *,
        hosts: Iterable[str] | None = None,
        ncpus: int = 8,
        ngpus: int = 0,
        mem_mb: int = 16 * 1024,
        home: Path | None = None,
        delays: Delays | None = None,
        ssh: bool = False,
        domain: str = "",
        number_file: Path | None = None,
    ):
        self.cluster = cluster
        self.ssh = ssh
        amount = Amount(ncpus, ngpus, mem_mb)
        name, home = getpass.getuser(), home or Path.home()
        user = {"HOME": str(home), "LOGNAME": name, "USER": name, "SHELL": "/bin/bash"}
        capacity = dict.fromkeys(hosts or cluster.hosts, amount)
        super().__init__(capacity, home, delays or Delays(), user)
        self.domain, self.number_file = f".{domain}" if domain else "", number_file

    # Begin and end

    def __enter__(self) -> Rehearsal:
        self.state = Path(tempfile.mkdtemp(prefix="pbs.", dir=self.cluster.state))
        self.socket_path = self.state / "socket"
        self.tasks = Tasks(self.cluster, self.socket_path, self.state)
        self.write_commands()
        self.addresses = self.find_addresses()
        self.write_names()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.socket_path))
        self.listener.listen(64)
        self.closing, self.wake = os.pipe()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_error) -> None:
        with self.changed:
            for job in self.jobs:
                if job.state in "QH":
                    self.delete(job)
        os.close(self.wake)
        self.thread.join()
        os.close(self.closing)
        self.listener.close()
        self.tasks.kill_all()
        for thread in self.threads:
            thread.join(10)
        shutil.rmtree(self.state, ignore_errors=True)

    def find_addresses(self) -> dict[str, str]:
        """The address of each host, by its name."""
        done = self.cluster.run(["getent", "hosts", *self.hosts])
        found = [line.split() for line in done.stdout.splitlines()]
        return {name: address for address, *names in found for name in names}

    def write_names(self) -> None:
        """The /etc/hosts of tasks; the first name of a host is the canonical one."""
        if self.domain:
            text = self.cluster.run(["cat", "/etc/hosts"]).stdout
            text = re.sub(r"(?m) (n\d+)$", rf" \1{self.domain} \1", text)
            (self.state / "names").write_text(text)

    def write_commands(self) -> None:
        """A folder for PATH, and the /etc/profile that puts it there."""
        names = [name for name in COMMANDS if name != "ssh"]
        profile = Path("/etc/profile").read_text()
        profile += f"\nPATH=$PATH:{self.write_folder('bin', names)}\n"
        if self.ssh:  # before the real one, which finds no sshd here
            profile += f"PATH={self.write_folder('ssh', ['ssh'])}:$PATH\n"
        (self.state / "profile").write_text(profile)

    def write_folder(self, folder: str, names: list[str]) -> Path:
        place = self.state / folder
        place.mkdir()
        start = shlex.join(
            [sys.executable, "-I", "-S", str(COMMAND), str(self.socket_path)]
        )
        for name in names:
            (place / name).write_text(f'#!/bin/sh\nexec {start} {name} "$@"\n')
            (place / name).chmod(0o755)
        return place

    # What tests call

    def run(
        self,
        *argv: str,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        timeout: float | None = 60,
    ) -> subprocess.CompletedProcess[str]:
        """A command as the user types it on the login host."""
        command = [*self.clean_environment(env or {}), *argv]
        return self.cluster.run(command, cwd=cwd or Path.cwd(), timeout=timeout)

    def clean_environment(self, more: dict[str, str]) -> list[str]:
        """The start of a command line: only what a fresh login has, and ``more``."""
        found = self.user | {"PATH": f"{self.state}/bin:/usr/bin:/bin"} | more
        return ["env", "-i", *(f"{name}={value}" for name, value in found.items())]

    def shell(self, command: list[str]) -> int:
        """Run a command on the login host, in this terminal; its exit status."""
        more = {"TERM": os.environ.get("TERM", "dumb")}
        start = self.clean_environment(more)
        return self.cluster.popen([*start, *command], cwd=Path.cwd()).wait()

    def qsub(self, *argv: str, cwd: Path | None = None, env=None) -> str:
        """The id of the new job.

        Raises:
            PbsError: the job was refused.
        """
        done = self.run("qsub", *argv, cwd=cwd, env=env)
        if done.returncode:
            raise PbsError(done)
        return done.stdout.strip()

    def lose(self, host: str) -> None:
        """Let a host fail: it is switched off, and what waits for it keeps waiting.

        After a while its jobs are run again on other hosts, or end (-r n).
        """
        with self.changed:
            self.lost.add(host)
        self.cluster.off(host)

    def restore(self, host: str) -> None:
        """Let a lost host take jobs again."""
        self.cluster.on(host)
        with self.changed:
            self.lost.discard(host)
            self.schedule()

    # Commands

    def serve(self) -> None:
        """Take connections until the end, each in a thread of its own."""
        while True:
            ready, _, _ = select.select([self.listener, self.closing], [], [])
            if self.closing in ready:
                return
            connection, _ = self.listener.accept()
            answering = threading.Thread(
                target=self.answer, args=(connection,), daemon=True
            )
            answering.start()

    def answer(self, connection: socket.socket) -> None:
        gone = contextlib.suppress(BrokenPipeError, ConnectionResetError, Closed)
        with connection, gone:
            message, descriptors = receive(connection)
            if "task" in message:
                self.tasks.hand_over(Started(**message).task, connection)
            elif "command" in message:  # else it was killed before it could ask
                call = Call(self, connection, Typed(**message), descriptors)
                call.answer(COMMANDS[call.name])
            for descriptor in descriptors:
                os.close(descriptor)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A line of JSON, and the file descriptors that came with it."""
    text, descriptors = b"", []
    while not text.endswith(b"\n"):
        part, more, _, _ = socket.recv_fds(connection, 2**16, 3)
        if not part:
            return {}, descriptors
        text += part
        descriptors += more
    return json.loads(text.splitlines()[0]), descriptors
