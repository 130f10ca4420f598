"""Snapshots of a run: written completely or not at all, read without running code."""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from tqdm import tqdm

from common.data import TrainingConfig
from common.distributed import BadInput, is_rank_0, log

OTHER = "choose another --snapshot"
CURE = f"move it away to start from scratch, or {OTHER}"


def write_snapshot(snapshot: dict, path: Path) -> None:
    """Make this the snapshot at ``path``, or raise BadInput and change nothing.

    Whenever the process is killed or the power fails, a complete snapshot is at
    ``path``: the old one or the new one. The old one is kept as ``path.previous``.
    """
    temporary, previous = Path(f"{path}.tmp"), Path(f"{path}.previous")
    try:
        with open(temporary, "wb") as file:
            torch.save(snapshot, file)
            file.flush()
            os.fsync(file.fileno())  # the bytes are on the disk ...
        if path.exists():
            previous.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # some file systems have no links
                os.link(path, previous)  # a second name: the file keeps its first
        os.replace(temporary, path)  # ... before the name points to them,
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)  # and the name is on the disk before we continue
        os.close(folder)
    except (OSError, RuntimeError) as error:  # torch.save wraps some errors
        with contextlib.suppress(OSError):  # half of it would only fill the disk
            temporary.unlink()
        why = getattr(error, "strerror", None) or type(error).__name__
        cure = f"what was there before is unharmed; free some space or {OTHER}"
        raise BadInput(f"cannot write the snapshot {path} ({why}): {cure}") from error


def read_snapshot(path: Path) -> dict:
    """What :func:`write_snapshot` wrote, on the CPU, or BadInput; runs no code."""
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # a damaged file raises nearly anything
        other = f"resume from the previous one (mv {path}.previous {path}) or "
        cure = (other if os.path.exists(f"{path}.previous") else "") + CURE
        what = f"{path} is damaged or is no snapshot ({type(error).__name__})"
        raise BadInput(f"the snapshot {what}: {cure}") from error


def read_for_all(path: Path) -> dict | None:
    """The snapshot that rank 0 reads, on all ranks; None where there is none."""
    snapshot, sent = None, [None, ""]  # its form without the numbers, and an error
    if is_rank_0() and path.exists():
        try:
            snapshot = read_snapshot(path)
            sent[0] = torch.load(path, map_location="meta", weights_only=True)
        except BadInput as error:
            sent[1] = str(error)
    if dist.is_initialized():
        dist.broadcast_object_list(sent, src=0)  # every rank must reach this line
    if sent[1]:
        raise BadInput(sent[1])  # on every rank, whatever was wrong on rank 0
    form = snapshot if is_rank_0() else sent[0]
    return _from_rank_0(form)


def _from_rank_0(part):
    """Rank 0's ``part``, on the CPU; the others give its form, tensors on ``meta``."""
    if isinstance(part, dict):
        return {key: _from_rank_0(value) for key, value in part.items()}
    if isinstance(part, (list, tuple)):
        return type(part)(map(_from_rank_0, part))
    if not isinstance(part, torch.Tensor) or not dist.is_initialized():
        return part
    gloo = dist.get_backend() == "gloo"
    device = torch.device("cpu") if gloo else torch.accelerator.current_accelerator()
    sent = part.to(device) if is_rank_0() else torch.empty_like(part, device=device)
    dist.broadcast(sent, src=0)  # every rank must reach this line, for each tensor
    return sent.cpu()


@contextlib.contextmanager
def resuming(path: Path, snapshot: dict) -> Iterator[None]:
    """Wrap lines that restore a run; BadInput if what was read doesn't fit."""
    try:
        yield
    except (LookupError, AttributeError, RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is a snapshot of another training: {CURE}") from error
    log(f"Resuming from {path} after {_progress(snapshot)}")


def save_or_continue(snapshot: dict, path: Path, rival: bool = False) -> str:
    """Write a snapshot; if that fails, return why, because the run must survive it."""
    try:
        if rival:
            raise BadInput(f"another run has written {path}: end one of the two")
        write_snapshot(snapshot, path)
    except BadInput as error:
        log(f"Continuing without a snapshot: {error}")
        return str(error)
    log(f"Snapshot of {_progress(snapshot)} in {path}")
    return ""


def _progress(snapshot: dict) -> str:
    """How far the run had got: ``5 epochs``, or ``7 steps``."""
    unit = "steps" if snapshot.get("steps_run") else "epochs"
    return f"{snapshot[unit + '_run']} {unit}"


def _version(path: Path) -> tuple[int, int] | None:
    """Which file is there, and the second it was written in; None if there is none."""
    return (path.stat().st_ino, int(path.stat().st_mtime)) if path.exists() else None


class Run:
    """How far a run has got, and its snapshot; ``parts`` have ``state_dict()``."""

    def __init__(self, config: TrainingConfig, **parts):
        self.config, self.parts, self.not_saved = config, parts, ""
        self.counters = {"epochs_run": 0, "steps_run": 0, "images_done": 0}
        self.losses, self.rates = [], []  # of each epoch; images/s of this rank
        # of the snapshot that it resumes or has written
        self.version = _version(config.snapshot)
        snapshot = read_for_all(config.snapshot)
        if snapshot is not None:
            with resuming(config.snapshot, snapshot):
                self.load_state_dict(snapshot)

    def state_dict(self) -> dict:
        """Counters and parts; all ranks call this: a part may be gathered from all."""
        return {k: part.state_dict() for k, part in self.parts.items()} | self.counters

    def load_state_dict(self, state: dict) -> None:
        """Restore what :meth:`state_dict` returned, on each rank."""
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.counters = {name: state[name] for name in self.counters}

    def epochs_left(self) -> Iterable[int]:
        """The numbers of the epochs to train; on rank 0 behind a progress bar."""
        self.since = time.perf_counter()
        epochs = range(self.counters["epochs_run"], self.config.total_epochs)
        hidden = None if is_rank_0() else True  # None: only where there is a terminal
        return tqdm(epochs, unit="epoch", disable=hidden)

    def end_epoch(self, loss: float, images: int) -> None:
        """Note the mean loss and this rank's images; save if it is time; all ranks."""
        self.losses.append(loss)
        self.rates.append(images / (time.perf_counter() - self.since))
        self.counters["epochs_run"] += 1
        self.counters["images_done"] = 0
        if self.counters["epochs_run"] % self.config.save_every == 0:
            self.save()
        self.since = time.perf_counter()

    def save(self) -> None:
        """Write a snapshot on rank 0, unless another run has; all ranks call this."""
        state, path = self.state_dict(), self.config.snapshot
        if is_rank_0():
            rival = _version(path) not in (None, self.version)
            self.not_saved = save_or_continue(state, path, rival)
            self.version = self.version if rival else _version(path)
        if dist.is_initialized():
            dist.barrier()  # a rank that passes this line can read what rank 0 wrote
