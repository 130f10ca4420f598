"""A world of its own for each check: what a learner's code can see, change and reach.

Ranks see the file system read-only but for the folder of their check and empty
temporary folders. Homes, the solutions, the checks and other learners' folders are not
there at all. There is no network but loopback, and no process but their own. Namespaces
do that without root (Linux 5.12 or newer); where they are forbidden, :func:`probe` says
why, and checks run as ordinary programs of this user.

The supervisor calls :func:`enter` before it forks the ranks, each rank :func:`confine`.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pwd
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from practice_cluster import namespaces
from practice_cluster.namespaces import BIND, RECURSIVE, mount

VISIBLE = "WORKSHOP_VISIBLE"  # more folders that ranks may read, as in PATH
PACKAGE = Path(__file__).resolve().parents[2]
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
COVERED = ("/run", "/mnt", "/media", "/root", *TEMPORARY)
OF_A_CLONE = ("solutions", "tests", ".git")  # what tells the answers

_OWN_MOUNTS = 0x00020000
# users, mounts, processes, network, shared memory
_OWN_WORLD = 0x10000000 | _OWN_MOUNTS | 0x20000000 | 0x40000000 | 0x08000000
_PRIVATE, _AT_RECURSIVE, _AT_FDCWD, _READ_ONLY = 1 << 18, 0x8000, -100, 1
_MOUNT_SETATTR = 442  # the same number on all architectures
_SIOCSIFFLAGS, _UP_AND_RUNNING = 0x8914, 0x1 | 0x40
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


def probe() -> str:
    """Why checks cannot have a world of their own here; "" if they can."""
    if sys.platform != "linux":
        return "only Linux has namespaces"
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        if os.fork() == 0:
            try:
                enter(Path(folder), [])
            except OSError as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)  # and with it its world
        os.close(writing)
        with open(reading, "rb") as pipe:
            return pipe.read().decode()  # which ends when both have


def enter(writable: Path, hidden: Iterable[str]) -> int:
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
    _check(_libc.unshare(_OWN_WORLD), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:
        request = struct.pack("16sh", b"lo", _UP_AND_RUNNING)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)
    mount("none", "/", flags=RECURSIVE | _PRIVATE)
    _hide([*COVERED, *_homes(), *hidden], visible={*_programs(), str(writable)})
    again = [os.path.join(PACKAGE, name) for name in OF_A_CLONE]
    _hide([*again, *hidden], visible={str(writable)})
    _read_only("/", True, _AT_RECURSIVE)
    for path in {*TEMPORARY, str(writable)}:
        if os.path.isdir(path):
            _read_only(path, False)
    return _fork_init()


def confine() -> None:
    """Take from this rank what :func:`enter` needed: it can undo nothing of it."""
    _check(_libc.unshare(_OWN_MOUNTS), "unshare")
    with contextlib.suppress(PermissionError):  # a container may hide parts of /proc
        namespaces.own_proc()
    os.environ["TMPDIR"], tempfile.tempdir = "/tmp", None
    _drop_rights()


def _hide(folders: Iterable[str], visible: set[str]) -> None:
    """Put an empty folder over each; what is visible inside is put back."""
    kept = {path: os.open(path, os.O_PATH) for path in sorted(visible)}
    for path in dict.fromkeys(folders):
        if os.path.isdir(path):
            mount("tmpfs", os.path.realpath(path), "tmpfs", 0, "size=1g,mode=1777")
    for path, number in kept.items():
        if not os.path.exists(path):
            os.makedirs(path)
            mount(f"/proc/self/fd/{number}", path, flags=BIND | RECURSIVE)
        os.close(number)  # through it, a rank would see what is hidden


def _programs() -> set[str]:
    """The folders that Python and the commands of PATH need."""
    prefixes = sys.prefix, sys.base_prefix, os.path.dirname(sys.executable)
    more = os.environ.get("PATH", ""), os.environ.get(VISIBLE, "")
    found = {*prefixes, *sys.path, *":".join(more).split(":"), str(PACKAGE)}
    found |= {os.path.realpath(path) for path in found if path}
    return {path for path in found if os.path.isabs(path) and os.path.isdir(path)}


def _homes() -> set[str]:
    """Where users' homes are: all of them, not only this user's."""
    homes = {os.path.expanduser("~")}
    with contextlib.suppress(KeyError):  # a user without a name
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    return {"/home"} | {
        home if os.path.dirname(home) == "/" else os.path.dirname(home)
        for home in map(os.path.realpath, homes)
        if home != "/"
    }


def _read_only(path: str, yes: bool, how: int = 0) -> None:
    wanted = (_READ_ONLY, 0) if yes else (0, _READ_ONLY)
    attributes = struct.pack("QQQQ", *wanted, 0, 0)
    place = _AT_FDCWD, os.fsencode(path), how
    result = _libc.syscall(_MOUNT_SETATTR, *place, attributes, len(attributes))
    _check(result, f"mount_setattr {path}")


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
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(reading)
        os.write(writing, b".")
        _drop_rights()
        _libc.prctl(_PR_SET_DUMPABLE, 0)  # no rank may trace it
        os.closerange(3, 4096)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
        while True:
            signal.pause()
    finally:
        os._exit(70)


def _drop_rights() -> None:
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            break  # that was the last one
    header = struct.pack("Ii", _CAPABILITIES_VERSION_3, 0)
    _check(_libc.capset(header, bytes(24)), "capset")


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
