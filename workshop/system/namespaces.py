"""The few system calls that give a process a world of its own (Linux)."""

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)

NEW_MOUNTS, NEW_NETWORK = 0x00020000, 0x40000000
# of a node: mounts, hostname, shared memory, processes, network
NEW_WORLD = NEW_MOUNTS | 0x04000000 | 0x08000000 | 0x20000000 | NEW_NETWORK
BIND, RECURSIVE, PRIVATE, DETACH = 0x1000, 0x4000, 1 << 18, 2
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x1 | 0x40
PR_SET_NAME, PR_SET_TIMERSLACK = 15, 29


def check(result: int, what: str) -> None:
    """Raise what a system call of ``libc`` has left in errno, unless it is 0."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare() -> None:
    """Leave all namespaces but the user's; the next child is PID 1 of the new one."""
    check(libc.unshare(NEW_WORLD), "unshare")


def start_loopback() -> None:
    """Switch on 127.0.0.1, which in a new network is off."""
    with socket.socket() as any_socket:
        request = struct.pack("16sh", b"lo", UP_AND_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


def set_hostname(name: str) -> None:
    socket.sethostname(name)


def set_name(name: str) -> None:
    """What ps shows as the command of this process, at most 15 letters."""
    libc.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def wake_on_time() -> None:
    """Timers of this process are exact, not 50 microseconds late."""
    libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)


def mount(
    source: str | Path,
    target: str | Path,
    kind: str | None = None,
    flags: int = 0,
    options: str | None = None,
) -> None:
    texts = [None if t is None else str(t).encode() for t in (source, target, kind)]
    data = None if options is None else options.encode()
    result = libc.mount(*texts, ctypes.c_ulong(flags), data)
    check(result, f"mount {source} on {target}")


def bind(source: Path, target: str) -> None:
    """Show `source` at `target`, if there is anything to cover there."""
    if os.path.exists(target):
        mount(source, target, flags=BIND)


def own_files(host: str, state: Path) -> None:
    """The hostname, /etc, /dev/shm and /sys of a host, in this mount namespace."""
    set_hostname(host)
    bind(state / "hosts" / "hosts", "/etc/hosts")
    bind(state / "hosts" / "nsswitch.conf", "/etc/nsswitch.conf")
    bind(state / "hosts" / host, "/etc/hostname")
    bind(state / "slurm", "/etc/slurm")
    mount("tmpfs", "/dev/shm", "tmpfs", options="mode=1777")
    own_sys(state / "spool" / "cgroup")


def own_sys(spare: Path) -> None:
    """Mount /sys again: its class/net shows the network of what mounted it.

    slurmd wants to see control groups in /sys/fs/cgroup, which a new /sys lacks:
    they are kept aside at `spare` and put back.
    """
    spare.mkdir(exist_ok=True)
    mount("/sys/fs/cgroup", spare, flags=BIND | RECURSIVE)
    with contextlib.suppress(PermissionError):  # a container may forbid it: do without
        mount("sysfs", "/sys", "sysfs")
        mount(spare, "/sys/fs/cgroup", flags=BIND | RECURSIVE)
    check(libc.umount2(str(spare).encode(), DETACH), f"umount {spare}")


def own_proc() -> None:
    """/proc of this PID namespace."""
    mount("proc", "/proc", "proc")


def reap() -> None:
    """Let ended children go; PID 1 inherits everybody's orphans."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def plain_signals() -> None:
    """Signals as a fresh process has them, whatever started this one."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
