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
