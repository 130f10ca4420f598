"""The Debian packages that some tests need: which are missing, and a life without them.

    python3 tools/debian_packages.py missing            # a line each; nothing if none
    python3 tools/debian_packages.py hide -- make test  # as on a machine without any
    python3 tools/debian_packages.py hide openmpi-bin -- pytest tests/jobs

``hide`` runs a command in a mount namespace of its own, in which the programs of the
packages are gone from /usr/bin and its like: not covered, but absent, as where they
were never installed. Outside nothing changes. It needs nothing but Python, since
continuous integration calls it before there is an environment.

Exit status: that of the command; 2 with one sentence if nothing can be hidden here.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDERS = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER
RECURSIVE, PRIVATE = 0x4000, 0x40000  # MS_REC, MS_PRIVATE
DETACH = 2  # MNT_DETACH
LIBC = ctypes.CDLL(None, use_errno=True)  # of Linux: unshare, mount, umount2


@dataclass(frozen=True)
class Package:
    """What one `apt-get install` brings.

    ``programs``: what tests start of it; the package is here if all of them are.
    ``parts``: the packages that hold the programs, where it is only a list of those.
    """

    programs: tuple[str, ...]
    parts: tuple[str, ...] = ()


PACKAGES = {
    "slurm-wlm": Package(
        ("slurmctld", "slurmd", "sbatch", "srun", "salloc", "sinfo", "scontrol"),
        parts=("slurm-client", "slurmctld", "slurmd"),
    ),
    "munge": Package(("munged",)),
    "iproute2": Package(("ip", "tc")),
    "procps": Package(("pgrep", "ps")),
    "openmpi-bin": Package(("mpirun", "ompi_info")),
    "openssh-client": Package(("ssh", "ssh-keygen")),
    "openssh-server": Package(("sshd",)),
    "chromium": Package(("chromium",)),
    "g++": Package(("g++",)),
}


class CannotHide(Exception):
    """One sentence: why programs can't be hidden on this machine."""


def find(program: str) -> str | None:
    """Where a program is; an ordinary user's PATH may lack the folders of daemons."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")


def missing() -> list[str]:
    """The packages of which a program is not here."""
    return [
        name
        for name, package in PACKAGES.items()
        if not all(find(program) for program in package.programs)
    ]


def files_of(names: Iterable[str]) -> set[str]:
    """The real paths of what dpkg knows of these packages; nothing without dpkg."""
    wanted = [part for name in names for part in (name, *PACKAGES[name].parts)]
    try:
        listed = subprocess.run(
            ["dpkg-query", "-L", *wanted], capture_output=True, text=True
        )
    except OSError:
        return set()
    return {os.path.realpath(line) for line in listed.stdout.splitlines()}


def entries_to_hide(folder: Path, names: Iterable[str]) -> list[Path]:
    """What stands in a folder of programs and is, or points to, a part of a package."""
    names = list(names)
    files = files_of(names)
    programs = {program for name in names for program in PACKAGES[name].programs}
    return [
        entry
        for entry in folder.iterdir()
        if entry.name in programs
        or (os.path.realpath(entry) in files and not entry.is_dir())
    ]


def enter_own_mounts() -> None:
    """From here on, what this process mounts is seen by it and its children alone."""
    user, group = os.geteuid(), os.getegid()
    world = NEW_MOUNTS if user == 0 else NEW_MOUNTS | NEW_USER
    if LIBC.unshare(world):
        reason = os.strerror(ctypes.get_errno())
        raise CannotHide(f"this machine allows no mount namespace ({reason})")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    mount("none", "/", flags=RECURSIVE | PRIVATE)


def mount(kind: str, target: str, options: str = "", flags: int = 0) -> None:
    """As the program of that name, which loses an ordinary user's rights to do it."""
    words = (kind, target, kind, options)
    source, where, what, data = (word.encode() for word in words)
    if LIBC.mount(source, where, what, ctypes.c_ulong(flags), data):
        reason = os.strerror(ctypes.get_errno())
        raise CannotHide(f"{target} can't be mounted over ({reason})")


def hide(names: Iterable[str]) -> None:
    """Take the packages' programs away from this process and its children."""
    if sys.platform != "linux":
        raise CannotHide("it takes Linux")
    names = list(names)
    folders = {Path(os.path.realpath(folder)) for folder in FOLDERS}
    found = {
        folder: entries_to_hide(folder, names) for folder in folders if folder.is_dir()
    }
    enter_own_mounts()
    option = "" if os.geteuid() == 0 and not in_user_namespace() else "userxattr,"
    layers = tempfile.mkdtemp(prefix="hidden-")
    try:
        mount("tmpfs", layers)
        for number, folder in enumerate(folders):
            if not found.get(folder):
                continue
            upper, work = f"{layers}/{number}", f"{layers}/{number}.work"
            os.mkdir(upper)
            os.mkdir(work)
            parts = f"{option}lowerdir={folder},upperdir={upper},workdir={work}"
            mount("overlay", str(folder), parts)
            for entry in found[folder]:
                entry.unlink()
    finally:
        # the overlays keep what they need of it; the name goes with the namespace
        LIBC.umount2(layers.encode(), DETACH)
        os.rmdir(layers)


def in_user_namespace() -> bool:
    """Whether root here is not root of the machine."""
    return Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]


def run_without(names: Iterable[str], command: list[str]) -> int:
    """Become the command, without the packages' programs; returns only to refuse."""
    names = list(names)
    if unknown := [name for name in names if name not in PACKAGES]:
        known = ", ".join(PACKAGES)
        print(f"{unknown[0]} is none of the packages: {known}", file=sys.stderr)
        return 2
    try:
        hide(names)
    except (CannotHide, OSError) as error:
        print(f"cannot hide {', '.join(names)}: {error}", file=sys.stderr)
        return 2
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"cannot start {command[0]}: {error.strerror}", file=sys.stderr)
        return 2


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("missing", help="print the packages this machine lacks")
    hiding = actions.add_parser("hide", help="run a command without packages")
    hiding.add_argument("packages", nargs="*", help="all of them if none is named")
    words = sys.argv[1:]
    command: list[str] = []
    if "--" in words:
        separator = words.index("--")
        words, command = words[:separator], words[separator + 1 :]
    arguments = parser.parse_args(words)
    if arguments.action == "missing":
        print("\n".join(missing()))
        return 0
    if not command:
        hiding.error("name the command after --, as in: hide -- make test")
    return run_without(arguments.packages or PACKAGES, command)


if __name__ == "__main__":
    sys.exit(main())
