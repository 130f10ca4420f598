"""Is this a container, what does it forbid, and which option would allow it?"""

from __future__ import annotations

import os
from pathlib import Path

MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))  # of Docker, of podman
STATUS = Path("/proc/self/status")
APPARMOR = Path("/proc/self/attr/current")
MOUNTS = Path("/proc/self/mounts")
SYS_ADMIN, NET_ADMIN = 21, 12  # numbers of capabilities(7)
FILTERED = "2"  # system calls, by a seccomp filter


def in_container() -> bool:
    """Whether this process is in a container, of any engine that says so."""
    named = {"container", "KUBERNETES_SERVICE_HOST"} & set(os.environ)
    return bool(named) or any(mark.exists() for mark in MARKS)


def options_for_namespaces(new_proc: bool = False) -> list[str]:
    """The options of ``docker run`` with which this user could have namespaces.

    An ordinary user only needs what Docker's filter of system calls and its covers over
    parts of /proc forbid. Root has no namespace of users around it, so it needs the
    capabilities themselves; Docker widens its filter for them.

    Args:
        new_proc: whether a /proc of their own is needed, too, as nodes of a cluster do.

    Returns:
        what this container lacks of them; [] if it isn't the container that forbids it.
    """
    if not in_container():
        return []
    options = []
    if os.geteuid() == 0 and new_proc:
        for name, number in (("SYS_ADMIN", SYS_ADMIN), ("NET_ADMIN", NET_ADMIN)):
            if not _has_capability(number):
                options.append(f"--cap-add {name}")
    else:
        if _status("Seccomp") == FILTERED:
            options.append("--security-opt seccomp=unconfined")
        if new_proc and _proc_is_covered():
            options.append("--security-opt systempaths=unconfined")
    if _is_confined_by_apparmor():  # Docker's profile forbids mounts
        options.append("--security-opt apparmor=unconfined")
    return options


def cure_for_namespaces(new_proc: bool = False) -> str:
    """How to start this container so that it may have them; "" if it's another's fault.

    The workshop's own compose file has a service with these options.
    """
    options = options_for_namespaces(new_proc)
    if not options:
        return ""
    return (
        "leave this container and start `docker compose run --rm cluster` in the "
        f"clone, or yours with `docker run {' '.join(options)}`"
    )


def _status(field: str) -> str:
    """A field of /proc/self/status; "" if the kernel doesn't have it."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return ""
    found = (line.partition(":")[2] for line in lines if line.startswith(f"{field}:"))
    return next(found, "").strip()


def _has_capability(number: int) -> bool:
    return bool(int(_status("CapEff") or "0", 16) >> number & 1)


def _proc_is_covered() -> bool:
    """Whether something is mounted over parts of /proc: no new one may show them."""
    try:
        lines = MOUNTS.read_text().splitlines()
    except OSError:
        return False
    return any(line.split()[1].startswith("/proc/") for line in lines)


def _is_confined_by_apparmor() -> bool:
    try:
        return APPARMOR.read_text().strip("\0\n ").endswith("(enforce)")
    except OSError:
        return False
