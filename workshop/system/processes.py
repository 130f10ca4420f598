"""What the kernel says of processes: their state, waits, children, commands."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def state_of(pid: int) -> str:
    """S sleeping, R ready to run, D on disk, ...: of the main thread."""
    try:
        stat = Path(f"/proc/{pid}/task/{pid}/stat").read_text()
        return stat.rsplit(") ", 1)[1][0]
    except (OSError, IndexError):
        return "?"


def waited_for_a_core(pid: int) -> float:
    """Seconds for which its threads were ready but others ran, added up.

    The main thread's alone would not do: it sleeps while another one of its process
    that holds the GIL waits for a core.
    """
    seconds = 0.0
    with contextlib.suppress(OSError, IndexError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text()
            seconds += int(text.split()[1]) / 1e9
    return seconds


def core_seconds(pid: int) -> float:
    """Seconds that it has had a core, with those of its children that have ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        own_and_childrens = stat.rsplit(") ", 1)[1].split()[11:15]
    except (OSError, IndexError):
        return 0.0
    return sum(map(int, own_and_childrens)) / os.sysconf("SC_CLK_TCK")


def below(root: int) -> tuple[list[int], set[int]]:
    """All processes below ``root`` (the kernel may lack lists of children).

    Returns:
        the living ones, and those that have ended: zombies below ``root``, and
        all that ended, wherever they were, while this function read.
    """
    parents: dict[int, int] = {}
    zombies, gone = set(), set()
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        try:
            with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
                stat = file.read()
        except OSError:
            gone.add(pid)
            continue
        state, parent = stat.rsplit(b") ", 1)[1].split(None, 2)[:2]
        parents[pid] = int(parent)
        if state == b"Z":
            zombies.add(pid)
    below, found = {root}, []
    while more := [p for p, up in parents.items() if up in below and p not in below]:
        below.update(more)
        found.extend(more)
    living = [pid for pid in found if pid not in zombies]
    return living, gone | zombies.intersection(found)


def with_variable(setting: str) -> Iterator[int]:
    """The processes of this machine that were started with ``NAME=value``."""
    wanted = os.fsencode(setting)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # another user's, or ended
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                yield int(pid)


def command_of(pid: int) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode("utf-8", "replace").strip()
