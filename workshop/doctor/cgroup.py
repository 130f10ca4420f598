"""What the control group of this process allows: less than the machine has, often.

A container and a batch job have a control group with limits. ``/proc/meminfo`` and the
number of cores show the machine's values there all the same. Version 1 has a folder for
each kind of resource, version 2 one for all; some machines have both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OWN_GROUPS = Path("/proc/self/cgroup")
ROOT = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # version 1 writes the largest multiple of a page for "no limit"


@dataclass(frozen=True)
class Limits:
    """What this process and the others in its groups may use together.

    ``memory``: bytes, None if there is no limit. ``memory_free``: what is left of them.
    ``cpus``: how many cores' worth of time, such as 1.5; None if there is no limit.
    """

    memory: int | None = None
    memory_free: int | None = None
    cpus: float | None = None


def limits() -> Limits:
    """The tightest limits of this process's groups and of those around them."""
    memory: list[tuple[int, int]] = []  # (free, limit)
    cpus: list[float] = []
    for folder in _folders(""):
        memory += _memory(folder, "memory.max", "memory.current", "inactive_file")
        with contextlib.suppress(OSError, ValueError):  # "max" is no number
            quota, period = (folder / "cpu.max").read_text().split()
            cpus.append(int(quota) / int(period))
    for folder in _folders("memory"):
        names = "memory.limit_in_bytes", "memory.usage_in_bytes"
        memory += _memory(folder, *names, "total_inactive_file")
    for folder in _folders("cpu"):
        with contextlib.suppress(OSError, ValueError):
            quota = int((folder / "cpu.cfs_quota_us").read_text())
            period = int((folder / "cpu.cfs_period_us").read_text())
            if quota > 0:  # -1: no limit
                cpus.append(quota / period)
    free, limit = min(memory, default=(None, None))
    return Limits(limit, free, min(cpus, default=None))


def _folders(controller: str) -> Iterator[Path]:
    """The folders of this process's group and of the groups around it.

    A container may see its own group as the root, and be told a path that only the host
    has: folders that are not there have no limits.

    Args:
        controller: of version 1, such as "memory"; "" for version 2.
    """
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller not in controllers.split(","):
            continue
        mounted = ROOT / controllers
        if not controller and not (mounted / "cgroup.controllers").exists():
            mounted = ROOT / "unified"  # beside version 1
        own = mounted / path.lstrip("/")
        yield from (one for one in (own, *own.parents) if one.is_relative_to(mounted))


def _memory(folder: Path, limit: str, used: str, cache: str) -> list[tuple[int, int]]:
    """[(free, limit)] in bytes, or [] if the group has no limit."""
    try:
        most = int((folder / limit).read_text())
        taken = int((folder / used).read_text())
    except (OSError, ValueError):
        return []
    if most >= UNLIMITED:
        return []
    return [(most - taken + _reclaimable(folder, cache), most)]


def _reclaimable(folder: Path, name: str) -> int:
    """Bytes of files in memory that the kernel drops when a program needs memory."""
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0
