"""Snapshots of a run: written whole or not at all, read without running code.

    write_snapshot({"model": ...}, Path("snapshot.pt"))
    snapshot = read_snapshot(Path("snapshot.pt"))

The previous snapshot is kept as snapshot.pt.previous. One process may write; any number
may read. :func:`save` and :func:`resume` take a trainer with ``state_dict`` and
``load_state_dict``.
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

from common.distributed import BadInput, is_rank_0, log

FORMAT = 1  # one more whenever older programs could no longer read what is written
# what load_state_dict and the like raise when they are given something else
MISFITS = AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError


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
        sync_folder(path.parent)  # and the name is on the disk before we continue
    except (OSError, RuntimeError) as error:  # torch.save wraps some errors
        for half in (temporary, beside(path, ".previous.tmp")):
            with contextlib.suppress(OSError):  # it would only fill the disk
                half.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SnapshotError(
            f"cannot write the snapshot {path} ({reason}): what was there before is "
            "unharmed; free some space or choose another --snapshot"
        ) from error


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
    if os.name == "nt":  # Windows cannot open a folder, and need not
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


def cure(path: Path) -> str:
    """What the reader can do about a snapshot that is of no use."""
    previous = beside(path, ".previous")
    if previous.exists():
        return f"resume from the previous one (mv {previous} {path}) or move both away"
    return "move it away to start from scratch, or choose another --snapshot"


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
    if dist.is_initialized():
        # every rank must reach this line; as many bytes as the file to each rank
        dist.broadcast_object_list(box, src=0)
    if box[1]:
        raise SnapshotError(box[1])
    return box[0]


def save(trainer, path: Path) -> str:
    """Save ``trainer.state_dict()``; all ranks call this, rank 0 writes.

    Returns why it is not saved, to be repeated at the end; "" if it is.
    """
    state = trainer.state_dict()  # some of it may be gathered from all ranks
    not_saved = save_or_continue(state, path) if is_rank_0() else ""
    if dist.is_initialized():
        dist.barrier()  # a rank that passes this line can read what rank 0 wrote
    return not_saved


def save_or_continue(snapshot: dict, path: Path) -> str:
    """Write a snapshot; if that fails, say so: no reason to lose the run, too."""
    try:
        write_snapshot(snapshot, path)
    except SnapshotError as error:
        log(f"Continuing without a snapshot: {error}")
        return str(error)
    log(f"Snapshot of {progress(snapshot)} in {path}")
    return ""


def check_saved(not_saved: str) -> None:
    """End the program with an error if its last snapshot is not on the disk.

    Raises:
        SnapshotError: ``not_saved``, which :func:`save` returned, is not "".
    """
    if not_saved:
        raise SnapshotError(not_saved)


def resume(trainer, path: Path) -> None:
    """Continue as if the run that saved the snapshot had never stopped.

    Raises:
        SnapshotError: what is there cannot be read, or is of another training.
    """
    snapshot = read_for_all(path)
    if snapshot is not None:
        with restoring_from(path):
            trainer.load_state_dict(snapshot)
        log(f"Resuming from {path} after {progress(snapshot)}")


@contextlib.contextmanager
def restoring_from(path: Path) -> Iterator[None]:
    """A ``with`` statement around the lines that restore a run.

    Raises:
        SnapshotError: what was read does not fit: it is of another training.
    """
    try:
        yield
    except MISFITS as error:
        raise SnapshotError(
            f"{path} is a snapshot of another training: move it away to start from "
            "scratch, or choose another --snapshot"
        ) from error


def progress(snapshot: dict) -> str:
    """How far the run had come: ``5 epochs``, or ``7 steps``."""
    unit = "steps" if "steps_run" in snapshot else "epochs"
    return f"{snapshot[unit + '_run']} {unit}"


def get_random_state(device: torch.device) -> dict[str, torch.Tensor]:
    """The state of the random numbers of this process and of its device."""
    state = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":  # dropout draws on the device it runs on
        state["device"] = torch.get_device_module(device).get_rng_state(device)
    return state


def set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    """Continue with the random numbers where :func:`get_random_state` was called."""
    torch.set_rng_state(state["cpu"])
    if "device" in state and device.type != "cpu":
        torch.get_device_module(device).set_rng_state(state["device"], device)
