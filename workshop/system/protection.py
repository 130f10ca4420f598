"""A view of this machine's files that leaves nothing to read or change but programs.

Everything is read-only but the folders that are named and empty temporary ones. Homes,
the solutions and the checks are not there at all. It holds in one mount namespace.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

from workshop.system.namespaces import BIND, PRIVATE, RECURSIVE, check, libc, mount

VISIBLE = "WORKSHOP_VISIBLE"  # more folders that may be read, as in PATH
CLONE = Path(__file__).resolve().parents[2]
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
COVERED = ("/run", "/mnt", "/media", "/root", *TEMPORARY)
OF_A_CLONE = ("solutions", "tests", ".git", "_build")  # what tells the answers

_AT_RECURSIVE, _AT_FDCWD, _READ_ONLY = 0x8000, -100, 1
_MOUNT_SETATTR = 442  # the same number on all architectures


def protect(writable: str, hidden: Iterable[str]) -> None:
    """Protect this machine's files from this process and those that it starts.

    Args:
        writable: the only folder of this machine that may be written to.
        hidden: more folders that must not be there, such as other learners'.

    Raises:
        OSError: the kernel forbids it, or is too old (5.12 has what is needed).
    """
    needed, hidden = programs(), [os.path.realpath(path) for path in hidden]
    mount("none", "/", flags=RECURSIVE | PRIVATE)
    outer = [path for path in (*COVERED, *_homes(), *hidden) if path not in needed]
    _hide(outer, visible={*needed, writable})
    _make_home()
    # once more what lies in a folder that was put back, unless it holds such a folder
    inside = [
        path
        for path in (*(os.path.join(CLONE, name) for name in OF_A_CLONE), *hidden)
        if not any(os.path.commonpath([path, one]) == path for one in needed)
    ]
    _hide(inside, visible={writable})
    _read_only("/", True, _AT_RECURSIVE)
    for path in {writable, *(path for path in TEMPORARY if path in outer)}:
        if os.path.isdir(path):
            _read_only(path, False)


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
        os.close(number)  # through it, one would see what is hidden


def _make_home() -> None:
    """An empty home instead of the hidden one: tasks of PBS and ssh begin there.

    Not in a temporary folder: each check gets an empty one, where it could write.
    """
    home = os.path.expanduser("~")
    if home.startswith(tuple(f"{path}/" for path in TEMPORARY)):
        return
    with contextlib.suppress(OSError):  # a user whose home was never there
        os.makedirs(home, exist_ok=True)


def programs() -> set[str]:
    """The folders that this Python and the commands of PATH need."""
    prefixes = sys.prefix, sys.base_prefix, os.path.dirname(sys.executable)
    more = os.environ.get("PATH", ""), os.environ.get(VISIBLE, "")
    found = {*prefixes, *sys.path, *":".join(more).split(":"), str(CLONE)}
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
    result = libc.syscall(_MOUNT_SETATTR, *place, attributes, len(attributes))
    check(result, f"mount_setattr {path}")
