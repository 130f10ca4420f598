"""A world of its own for each check: what a learner's code can see, change and reach.

Ranks see the file system read-only except for the folder of their check and empty
temporary folders. Homes, the solutions, the checks and other learners' folders are not
there at all. There is no network but loopback, and no process but their own. Namespaces
do that without root (Linux 5.12 or newer); where they are forbidden, :func:`probe` says
why, and checks run as ordinary programs of this user.

The supervisor calls :func:`enter` before it forks the ranks, each rank :func:`confine`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from workshop.system.namespaces import (
    NEW_MOUNTS,
    NEW_NETWORK,
    check,
    libc,
    own_proc,
    start_loopback,
)
from workshop.system.protection import protect

# users, mounts, processes, network, shared memory
_OWN_WORLD = 0x10000000 | NEW_MOUNTS | 0x20000000 | NEW_NETWORK | 0x08000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES_VERSION_3 = 0x20080522


def probe() -> str:
    """Why checks cannot have a world of their own here; "" if they can."""
    if sys.platform != "linux":
        return "only Linux has namespaces"
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        if os.fork() == 0:
            try:
                enter(folder, [])
            except OSError as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)  # and with it its world
        os.close(writing)
        with open(reading, "rb") as pipe:
            return pipe.read().decode()  # which ends when both have


def enter(writable: str, hidden: Iterable[str]) -> int:
    """Give this process, and what it forks from now on, a world of its own.

    Args:
        writable: the folder of the check, the only one of this machine to write in.
        hidden: more folders that must not be there, such as other learners'.

    Returns:
        the process that keeps the world: with it, all others in it end.

    Raises:
        OSError: the kernel forbids it, or is too old.
    """
    user, group = os.getuid(), os.getgid()
    check(libc.unshare(_OWN_WORLD), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    start_loopback()
    protect(writable, hidden)
    return _fork_init()


def confine() -> None:
    """Take from this rank what :func:`enter` needed: it can undo none of that."""
    check(libc.unshare(NEW_MOUNTS), "unshare")
    with contextlib.suppress(PermissionError):  # a container may hide parts of /proc
        own_proc()
    os.environ["TMPDIR"], tempfile.tempdir = "/tmp", None
    _drop_rights()


def _fork_init() -> int:
    """PID 1 of the new world, which inherits what others leave, and does nothing."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        os.read(reading, 1)  # until it would end with this process
        os.close(reading)
        return pid
    try:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(reading)
        os.write(writing, b".")
        _drop_rights()
        libc.prctl(_PR_SET_DUMPABLE, 0)  # no rank may trace it
        os.closerange(3, 4096)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
        while True:
            signal.pause()
    finally:
        os._exit(70)


def _drop_rights() -> None:
    check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    for capability in range(64):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            break  # that was the last one
    header = struct.pack("Ii", _CAPABILITIES_VERSION_3, 0)
    check(libc.capset(header, bytes(24)), "capset")
