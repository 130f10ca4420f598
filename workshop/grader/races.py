"""Races that a wrong answer usually wins are lost here, every time."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

_OLD = {"saved": "before this run"}
_listening: list[tuple[str, set[str]]] = []  # (folder, what was written in it)


@contextlib.contextmanager
def slow_writes(folder: Path, seconds: float = 0.3) -> Iterator[set[str]]:
    """``torch.save`` takes long, and to sleep meanwhile does not help.

    The file is there, and empty, long before it is complete. ``time.sleep`` returns at
    once: a rank that sleeps instead of waiting for the writer comes too early. Gives
    the names of the files of ``folder`` that this rank opens for writing.
    """
    save, sleep = torch.save, time.sleep
    written: set[str] = set()
    if not _listening:
        sys.addaudithook(_note)
    _listening.append((os.path.abspath(folder), written))

    def slow_save(snapshot: Any, file: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(file, (str, os.PathLike)):
            open(file, "wb").close()
        sleep(seconds)
        save(snapshot, file, *args, **kwargs)

    torch.save, time.sleep = slow_save, lambda _: None
    try:
        yield written
    finally:
        torch.save, time.sleep = save, sleep


def _note(event: str, arguments: tuple) -> None:
    """A file is opened: ``(path, mode, flags)``."""
    if event != "open" or not arguments[2] & (os.O_WRONLY | os.O_RDWR):
        return
    if isinstance(arguments[0], (str, os.PathLike)):
        place, name = os.path.split(os.path.abspath(arguments[0]))
        for folder, written in _listening:
            if place == folder:
                written.add(name)


def elsewhere(path: Path, written: set[str]) -> str:
    """What to say if rank 0 wrote these names of the folder, and not ``path``."""
    names = ", ".join(sorted(written)) or "nothing"
    return f"rank 0 wrote {names}, not {path.name}, the path that it was given"


def leave_an_old_file(path: Path, rank: int) -> None:
    """Before a save that all ranks call: a file is there already, and rank 0 is late.

    A rank that looks for a file instead of waiting for rank 0 finds this one.
    """
    if rank == 0:
        torch.save(_OLD, path)
    dist.barrier()
    if rank == 0:
        time.sleep(0.2)


def is_old(path: Path) -> bool:
    """Whether the file is still that of :func:`leave_an_old_file`."""
    with contextlib.suppress(Exception):
        return torch.load(path, weights_only=True) == _OLD
    return False


def complete(path: Path) -> bool:
    """Whether the file is there, is new, and can be loaded."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True) != _OLD
    except pickle.UnpicklingError as error:  # all of it is there, and more than data
        return "Weights only load failed" in str(error)
    except Exception:  # half a file raises nearly anything
        return False
