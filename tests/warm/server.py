"""The server of warm Pythons: imports torch at the first start, forks for every one.

``python tests/warm/server.py FOLDER NAMES SOCKET`` serves an open socket; NAMES are the
variables that only it has. Standard input is its lifeline: when the test session that
holds the other end of the pipe has ended, however it did, the server ends, all programs
with it, and FOLDER is removed.

A start makes two processes, a watcher, which the client talks to, and the program.
Each dies with the one before it, by the kernel's word (PR_SET_PDEATHSIG).

A program whose client leads no process group is in the watcher's group and session,
since a process can't join a group of another session. So a signal to the caller's group
is sent on to the program's group: the client has a witness in its own, which tells the
watcher whether the signal came to all. What a program leaves running when it ends is
out of reach of the caller's group afterwards; start a test cold if it needs that.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import importlib
import marshal
import os
import select
import shutil
import signal
import socket
import struct
import sys
import weakref
from typing import NoReturn

import program
import terms

PRELOADED = (
    "torch",
    "torch._dynamo",
    "torch.distributed.checkpoint.state_dict",
    "torch.distributed.elastic.rendezvous.c10d_rendezvous_backend",
    "torch.distributed.elastic.rendezvous.static_tcp_rendezvous",
    "torch.distributed.fsdp",
    "torch.distributed.nn.functional",
    "torch.distributed.pipelining",
    "torch.distributed.run",
    "torch.distributed.tensor.parallel",
    "torch.multiprocessing.spawn",
    "torch.nn.parallel",
    "torch.optim",
    "torch.utils.data.distributed",
    "multiprocessing.resource_tracker",
    "numpy",
    "sklearn.datasets",
    "tqdm",
)
NAMESPACES = ("user", "cgroup", "ipc", "uts", "net", "pid", "mnt")
PR_SET_PDEATHSIG = 1
SPAWNED = "from multiprocessing.spawn import spawn_main"
QUESTION = b"\0"  # no signal has this number

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    folder = sys.argv[1]
    servers_own = sys.argv[2].split(",")  # variables that only the server has
    own = {k: v for k, v in os.environ.items() if k not in servers_own}
    for name in servers_own:
        os.environ.pop(name, None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the watchers
    listening = socket.socket(fileno=int(sys.argv[3]))
    started = serve(listening, own)
    if started is None:  # the session has ended
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)
    started.run()  # this process is a program now


def serve(listening: socket.socket, own: dict[str, str]) -> program.Program | None:
    """Returns in each program's process, and in the server when its time is over."""
    ready, _, _ = select.select([listening, 0], [], [])
    if 0 in ready:  # the session has started no program
        return None
    for name in PRELOADED:
        with contextlib.suppress(ModuleNotFoundError):  # of an older torch
            importlib.import_module(name)
    # Ranks of mp.spawn end by SIGINT with their parent; here their watchers see to it.
    sys.modules["torch.multiprocessing.spawn"]._prctl_pr_set_pdeathsig = int
    # torchrun asks for its caller's name so, and this reads the sources of all modules
    rendezvous = sys.modules["torch.distributed.elastic.rendezvous.dynamic_rendezvous"]
    rendezvous.get_method_name = name_of_caller
    # init_process_group empties these caches: each program would copy them to do so
    sys.modules["torch._dynamo"].trace_rules.clear_lru_cache()
    # at exit, torch.library takes its operators apart: half the time of a short program
    weakref.finalize._registry.clear()
    preloaded = program.Preloaded.until_now()
    gc.collect()
    gc.freeze()
    gc.disable()
    while True:
        ready, _, _ = select.select([listening, 0], [], [])
        if 0 in ready:
            return None
        client, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            return start(client, own, preloaded)
        client.close()


def name_of_caller(depth: int = 2) -> str:
    """As torch's `get_method_name`, at a quarter less for a warm start of torchrun."""
    return sys._getframe(depth).f_code.co_name


def start(
    client: socket.socket, own: dict[str, str], preloaded: program.Preloaded
) -> program.Program:
    """Watch one start; returns only in the process of the program."""
    watcher = os.getpid()
    try:
        return watch(client, own, preloaded)
    except BaseException as error:
        try:
            if os.getpid() == watcher:
                refuse(client, repr(error))
        finally:  # also when the client is gone: only programs return from here
            os._exit(1)


def watch(
    client: socket.socket, own: dict[str, str], preloaded: program.Preloaded
) -> program.Program:
    """Fork the program, which returns from here; the watcher never does.

    Raises:
        OSError: the program cannot be what its client is; it must start cold.
    """
    server = os.getppid()
    die_with(server)
    os.setsid()  # nobody's Ctrl-C reaches the watcher
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    wanted, files = receive(client)
    witness = socket.socket(fileno=files.pop())
    command = terms.parse(wanted["arguments"])
    if command is None:
        refuse(client, f"the options of {wanted['arguments']}")
    if differing := terms.differing(wanted["environment"], own):
        refuse(client, f"other values of {differing}")
    if not same_user(peer(client), wanted["ids"]):
        refuse(client, "another user")
    parent = os.pidfd_open(parent_of(peer(client))) if is_rank(command) else None
    join_namespaces_of(peer(client))
    die_with(server)  # once more: another user namespace has undone it
    prepared, preparing = os.pipe()
    watcher = os.getpid()
    child = os.fork()
    if child == 0:
        die_with(watcher)
        client.close()
        witness.close()
        os.close(prepared)
        started = program.Program(command, wanted, preloaded)
        started.prepare(files, preparing)
        return started
    os.close(preparing)
    for number in files:
        os.close(number)
    if os.read(prepared, 1) != b"W":
        refuse(client, "the program could not be prepared")
    client.sendall(b"W")
    leads = wanted["leads_session"] or wanted["leads_group"]
    attend(client, Witness(witness), Killer(child, child if leads else watcher), parent)


def refuse(client: socket.socket, why: str) -> NoReturn:
    """Let the client start cold."""
    print("cold:", why, file=sys.stderr, flush=True)
    client.sendall(b"C")
    os._exit(0)


class Witness:
    """A process in the client's group: the signals that it got, the whole group got."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.seen: list[int] = []

    def is_alive(self) -> bool:
        """Ask it, and read which signals it got so far; it answers unless killed."""
        with contextlib.suppress(OSError):
            self.line.sendall(QUESTION)
            while numbers := self.line.recv(64):
                self.seen += numbers.replace(QUESTION, b"")
                if QUESTION in numbers:
                    return True
        return False

    def has_seen(self, number: int) -> bool:
        """Whether the signal that the client got once came to the group."""
        self.is_alive()
        if number not in self.seen:
            return False
        self.seen.remove(number)
        return True


class Killer:
    """Signals the program or, as its caller did, everything in its group."""

    def __init__(self, child: int, group: int) -> None:
        self.child = child
        self.group = group

    def kill(self, number: int, whole_group: bool = False) -> None:
        if whole_group:
            os.killpg(self.group, number)
        else:
            os.kill(self.child, number)


def attend(
    client: socket.socket, witness: Witness, killer: Killer, parent: int | None
) -> NoReturn:
    """Pass the client's signals on; tell it how the program ended.

    Args:
        parent: a file of the client's parent if the program shall end with that.
    """
    ended = os.pidfd_open(killer.child)
    watched = [client, ended] if parent is None else [client, ended, parent]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if ended in ready:
            break
        if parent in ready:
            watched.remove(parent)
            killer.kill(signal.SIGINT)
        if client in ready:
            try:
                numbers = client.recv(64)
            except OSError:
                numbers = b""
            if not numbers:  # the client is gone, by SIGKILL
                killer.kill(signal.SIGKILL, whole_group=not witness.is_alive())
                break
            for number in numbers:
                killer.kill(number, whole_group=witness.has_seen(number))
    _, status = os.waitpid(killer.child, 0)
    with contextlib.suppress(OSError):
        client.sendall(status.to_bytes(4, "little"))
    os._exit(0)


def receive(client: socket.socket) -> tuple[dict, list[int]]:
    """What the client said, and its open files."""
    files = array.array("i")
    space = socket.CMSG_LEN(256 * files.itemsize)
    head, rights, _, _ = client.recvmsg(4, space, socket.MSG_CMSG_CLOEXEC)
    for _, _, data in rights:
        files.frombytes(data[: len(data) - len(data) % files.itemsize])
    length = int.from_bytes(head, "little")
    body = b""
    while len(body) < length:
        part = client.recv(length - len(body))
        if not part:
            os._exit(0)
        body += part
    return marshal.loads(body), list(files)


def peer(client: socket.socket) -> int:
    """The client's process, by its number here: the kernel translates."""
    size = struct.calcsize("3i")
    credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return struct.unpack("3i", credentials)[0]


def parent_of(pid: int) -> int:
    """The number of a process's parent."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def is_rank(command: terms.Command) -> bool:
    """Whether multiprocessing starts a process of its own by this command."""
    return command.kind == "-c" and command.rest[1].startswith(SPAWNED)


def same_user(pid: int, ids: list) -> bool:
    """Whether the client may what the server may; in another world, as its owner."""
    if _inode(pid, "user") != _inode(os.getpid(), "user"):
        return True
    own = [os.getresuid(), os.getresgid()]
    return ids == own and _rights(pid) == _rights(os.getpid())


def _rights(pid: int) -> list[str]:
    with open(f"/proc/{pid}/status") as file:
        return [line for line in file if line.startswith(("Cap", "NoNewPrivs"))]


def _inode(pid: int, name: str) -> int:
    return os.stat(f"/proc/{pid}/ns/{name}").st_ino


def join_namespaces_of(pid: int) -> None:
    """Be where the client is, on a node of a practice cluster, say.

    The namespace of processes counts for the next child only.
    """
    joined = []
    for name in NAMESPACES:
        if _inode(pid, name) != _inode(os.getpid(), name):
            joined.append(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC))
    for number in joined:
        if libc.setns(number, 0):
            raise OSError(ctypes.get_errno(), "setns")
        os.close(number)


def die_with(parent: int) -> None:
    """SIGKILL for this process once its parent has ended."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() not in (parent, 0):  # 0: it lives in another world of processes
        os._exit(1)


if __name__ == "__main__":
    main()
