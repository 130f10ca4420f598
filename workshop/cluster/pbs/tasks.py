"""Processes on the nodes: how a task starts, what belongs to it, and its output."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from .on_node import Order

ON_NODE = Path(__file__).with_name("on_node.py")
STARTING = 20  # seconds that a node gets to start a process
ENDING = 5  # seconds that a killed process gets to end


class Closed(Exception):
    """The rehearsal is over: nothing can be started any more."""


@dataclass
class Task:
    """One process on a node, and whatever it starts in its session."""

    host: str
    order: Order  # what on_node.py becomes
    descriptors: list[int]  # its stdin, stdout and stderr, until they are given away
    popen: subprocess.Popen | None = None
    session: int = 0  # as this process sees it; 0 until the task has started
    started: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> int:
        """The exit status; -9 after SIGKILL."""
        assert self.popen is not None
        return self.popen.wait()

    @property
    def running(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    def signal(self, number: int) -> None:
        """Signal every process of the session, as the MOM of the host does."""
        if self.running:
            self.started.wait(STARTING)
        signal_session(self.session, number)


class Tasks:
    """Starts processes on the nodes of a cluster."""

    def __init__(self, cluster, socket_path: Path, state: Path):
        self.cluster, self.socket_path, self.state = cluster, socket_path, state
        self.all: list[Task] = []
        self.closed = False
        root = os.geteuid() == 0
        user = [] if root else ["--user", "--map-current-user", "--keep-caps"]
        self.unshare = ["unshare", "--mount", *user]

    def start(self, host, argv, env, cwd, descriptors, umask=0o022) -> Task:
        """Start a program on a host; ``descriptors`` become its stdin, stdout, stderr.

        A task sees /var/tmp and /var/spool of its host, which no other host sees, and
        the /etc/profile of a host with PBS.
        """
        if self.closed:
            raise Closed
        order = Order(
            program=find_program(argv[0], env),
            argv=[argv[0].removeprefix("login:"), *argv[1:]],
            env=env,
            cwd=str(cwd),
            umask=umask,
            mounts=self.mounts(host),
        )
        task = Task(host, order, [os.dup(descriptor) for descriptor in descriptors])
        self.all.append(task)
        number = str(len(self.all) - 1)
        command = [sys.executable, "-I", "-S", str(ON_NODE), str(self.socket_path)]
        with open(self.state / "tasks.log", "ab") as log:
            task.popen = self.cluster.popen(
                [*self.unshare, *command, number],
                node=host,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return task

    def mounts(self, host: str) -> list[tuple[str, str]]:
        own = self.folder(host)
        replaced = {
            own / "tmp": "/var/tmp",
            own / "spool": "/var/spool",
            self.state / "profile": "/etc/profile",
            self.state / "names": "/etc/hosts",  # where hosts have full names
        }
        return [(str(path), at) for path, at in replaced.items() if path.exists()]

    def folder(self, host: str) -> Path:
        """What only this host sees as its /var/tmp and /var/spool."""
        folder = self.state / "hosts" / host
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        for name in ("aux", "mom_priv/jobs", "spool", "undelivered"):
            (folder / "spool/pbs" / name).mkdir(parents=True, exist_ok=True)
        return folder

    def hand_over(self, number: int, connection: socket.socket) -> None:
        """Tell a task that has just started what it is."""
        task = self.all[number]
        task.session = peer_pid(connection)
        message = task.order.as_line()
        quiet = socket.MSG_NOSIGNAL  # the task may have been killed
        sent = socket.send_fds(connection, [message], task.descriptors, quiet)
        if sent < len(message):
            connection.sendall(message[sent:], quiet)
        for descriptor in task.descriptors:
            os.close(descriptor)
        task.descriptors.clear()
        task.started.set()

    def kill_all(self) -> None:
        """End everything, and start nothing more."""
        self.closed = True
        for task in self.all:
            if task.popen is None:
                continue
            if task.started.is_set():
                task.signal(signal.SIGKILL)
            else:
                task.popen.kill()
            task.popen.wait()


def find_program(name: str, env: dict[str, str]) -> str:
    """The file that a name stands for: PATH is the one of the task."""
    if name == "login:-bash":
        return "/bin/bash"
    return name if "/" in name else shutil.which(name, path=env["PATH"]) or name


def peer_pid(connection: socket.socket) -> int:
    """Who has connected, in this process's numbering, from whatever namespace."""
    size = struct.calcsize("3i")
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return struct.unpack("3i", packed)[0]


def signal_session(session: int, number: int) -> None:
    """Signal every process of a session; with SIGKILL, until none is left.

    One that is started while we look is not seen, and one that was seen may end.
    """
    end = time.monotonic() + ENDING
    while members := session_members(session):
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if number != signal.SIGKILL or time.monotonic() > end:
            return
        time.sleep(0.01)


def session_members(session: int) -> list[int]:
    """The processes of a session that are not dead yet."""
    members = []
    for path in Path("/proc").glob("[0-9]*/stat") if session else ():
        try:
            text = path.read_text(errors="replace")
        except OSError:  # gone in the meantime
            continue
        state, _, _, found = text.rpartition(")")[2].split()[:4]
        if int(found) == session and state not in "ZX":
            members.append(int(path.parent.name))
    return members


class Demux:
    """Carries the output of tasks to the output files of their job.

    It is what OpenPBS calls pbs_demux. A job's SIGTERM ends it; a task that still
    prints then writes into a broken pipe.
    """

    def __init__(self):
        self.stop_read, self.stop_write = os.pipe()
        self.threads: list[threading.Thread] = []

    def pipe_to(self, path: Path) -> int:
        """The end of a pipe to write to; the caller closes it."""
        read, write = os.pipe()
        thread = threading.Thread(target=self.carry, args=(read, path), daemon=True)
        thread.start()
        self.threads.append(thread)  # not before: join() refuses one that never ran
        return write

    def carry(self, read: int, path: Path) -> None:
        """Whole lines: others write to the same file, and ls writes one in pieces."""
        begun = b""  # a line whose end is still to come
        with open(path, "ab", buffering=0) as file:
            while self.stop_read not in self.wait_for(read):
                data = os.read(read, 2**16)
                if not data:
                    break
                lines, end, begun = (begun + data).rpartition(b"\n")
                file.write(lines + end)
            file.write(begun)
        os.close(read)

    def wait_for(self, read: int) -> list[int]:
        return select.select([read, self.stop_read], [], [])[0]

    def die(self) -> None:
        if self.stop_write >= 0:
            os.close(self.stop_write)
            self.stop_write = -1
        self.join(1)

    def finish(self) -> None:
        """Carry what is still to come, but do not wait for what holds on to a pipe."""
        self.join(0.5)
        self.die()
        os.close(self.stop_read)

    def join(self, seconds: float) -> None:
        for thread in self.threads:
            thread.join(seconds)
