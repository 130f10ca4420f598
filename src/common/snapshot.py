"""Snapshots of a training: written whole or not at all, read without running code.

    write_snapshot({"model": ...}, Path("snapshot.pt"))
    snapshot = read_snapshot(Path("snapshot.pt"))

The snapshot before the newest one is kept as snapshot.pt.previous. One process may
write; any number may read.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist

from common.cli import BadInput
from common.logging import is_rank_0, log

FORMAT = 1  # one more whenever older programs could no longer read what is written

# What load_state_dict and the like raise when they are given something else.
MISFITS = (
    AttributeError,
    IndexError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
)


class SnapshotError(BadInput):
    """A snapshot cannot be written or read: one sentence names it and the cure."""


def beside(path: Path, suffix: str) -> Path:
    """``snapshot.pt`` and ``.previous`` to ``snapshot.pt.previous``."""
    return path.with_name(path.name + suffix)


def write_snapshot(snapshot: dict, path: Path) -> None:
    """Make this the snapshot at ``path``; the one before stays as the previous one.

    Whenever the process is killed or the power fails, a complete snapshot is at
    ``path``: the old one or the new one.

    Raises:
        SnapshotError: it could not be written; the old one is still there.
    """
    temporary = beside(path, ".tmp")
    try:
        with open(temporary, "wb") as file:
            torch.save({"format": FORMAT, **snapshot}, file)
            file.flush()
            os.fsync(file.fileno())  # the bytes are on the disk ...
        keep_previous(path)
        os.replace(temporary, path)  # ... before the name points to them,
        sync_folder(path.parent)  # and the name is on the disk before we go on
    except (OSError, RuntimeError) as error:  # torch.save wraps some errors
        remove_strays(path)  # half a snapshot would only fill the disk
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SnapshotError(
            f"cannot write the snapshot {path} ({reason}): what was there before is "
            "unharmed; free some space or choose another --snapshot"
        ) from error


def save_or_go_on(snapshot: dict, path: Path) -> str:
    """Write a snapshot; if that fails, say so and let the training go on.

    Returns why it is not saved, to be said again at the end; "" if it is.
    """
    try:
        write_snapshot(snapshot, path)
    except SnapshotError as error:  # no reason to lose the training, too
        log(f"Going on without a snapshot: {error}")
        return str(error)
    log(f"Snapshot of {progress(snapshot)} in {path}")
    return ""


def check_saved(not_saved: str) -> None:
    """Let the program end with an error if its last snapshot is not on the disk.

    Raises:
        SnapshotError: ``not_saved``, which :func:`save_or_go_on` returned, is not "".
    """
    if not_saved:
        raise SnapshotError(not_saved)


def progress(snapshot: dict) -> str:
    """How far the training had come: ``5 epochs``, or ``7 steps``."""
    unit = "steps" if "steps_run" in snapshot else "epochs"
    return f"{snapshot[unit + '_run']} {unit}"


def keep_previous(path: Path) -> None:
    """Give what is at ``path`` a second name; there is no moment without the first."""
    if not path.exists():
        return
    temporary = beside(path, ".previous.tmp")
    temporary.unlink(missing_ok=True)
    try:
        os.link(path, temporary)
    except OSError:  # some file systems have no links
        shutil.copyfile(path, temporary)
    os.replace(temporary, beside(path, ".previous"))
    # if both were names of one file already, replace has left them both
    temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, too."""
    if os.name == "nt":  # Windows cannot open a folder, and needs not
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_strays(path: Path) -> None:
    """Remove what a killed save left half done; only the writer may call this.

    The names are always the same, so there are never more than these two.
    """
    for suffix in (".tmp", ".previous.tmp"):
        # nothing depends on it, and the next save says what is wrong
        with contextlib.suppress(OSError):
            beside(path, suffix).unlink(missing_ok=True)


def read_snapshot(path: Path) -> dict:
    """Read what :func:`write_snapshot` wrote, with all tensors on the CPU.

    Raises:
        SnapshotError: there is something else, or nothing that can be read. Code in
            the file is not run: ``weights_only=True`` accepts tensors and plain data.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115  the errors of what follows are others
    except OSError as error:
        raise SnapshotError(
            f"cannot read the snapshot {path} ({error.strerror}): change that or "
            "choose another --snapshot"
        ) from error
    try:
        with file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one sentence is enough, see below
            snapshot = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file raises nearly anything
        raise SnapshotError(
            f"the snapshot {path} is damaged or is no snapshot "
            f"({type(error).__name__}): {cure(path)}"
        ) from error
    number = snapshot.get("format") if isinstance(snapshot, dict) else None
    if not isinstance(number, int):
        raise SnapshotError(f"{path} is not a snapshot of this program: {cure(path)}")
    if number > FORMAT:
        raise SnapshotError(
            f"the snapshot {path} has the newer format {number}, and this program "
            f"reads up to {FORMAT}: update the program or choose another --snapshot"
        )
    return snapshot


def read_for_all(path: Path) -> dict | None:
    """The snapshot, read by rank 0 and sent to all; None where there is none.

    Raises:
        SnapshotError: on every rank, whatever was wrong on rank 0.
    """
    box: list = [None, None]  # the snapshot and an error, of which one or none is there
    if is_rank_0() and path.exists():
        try:
            box[0] = read_snapshot(path)
        except SnapshotError as error:
            box[1] = str(error)
    # every rank must reach this line; as many bytes as the file to each rank
    dist.broadcast_object_list(box, src=0)
    snapshot, error = box
    if error:
        raise SnapshotError(error)
    return snapshot


def cure(path: Path) -> str:
    """What the reader can do about a snapshot that is of no use."""
    previous = beside(path, ".previous")
    if previous.exists():
        return f"go on from the one before it (mv {previous} {path}) or move both away"
    return "move it away to start anew, or choose another --snapshot"


@contextlib.contextmanager
def restoring_from(path: Path) -> Iterator[None]:
    """A ``with`` statement around the lines that restore a training.

    Raises:
        SnapshotError: what was read does not fit: it is of another training.
    """
    try:
        yield
    except MISFITS as error:
        raise SnapshotError(
            f"{path} is a snapshot of another training: move it away to start anew, "
            "or choose another --snapshot"
        ) from error
