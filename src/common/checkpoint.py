"""Checkpoints of a sharded model: every rank writes its shards, any grid reads them.

    checkpoints = Checkpoints(Path("checkpoints"), model, optimizer, sizes)
    steps_run = checkpoints.load_newest()          # 0 where there is none
    checkpoints.save(steps_run, background=True)   # while training continues
    checkpoints.wait()                             # before the next, and at the end

Each checkpoint is a folder, ``checkpoint-STEPS``, with files of each rank. The file
``.metadata``, which says which part of which tensor is where, is written last: a folder
without it is from a save that was killed.
"""

from __future__ import annotations

import pickle
import re
import shutil
import socket
import warnings
from concurrent.futures import Future
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)

from common.byte_gpt import ByteGPT, Sizes
from common.distributed import BadInput, is_rank_0, log

NAME = re.compile(r"checkpoint-(\d+)")
WRITTEN_LAST = ".metadata"
READING = AttributeError, LookupError, RuntimeError, TypeError, ValueError
# CheckpointException is not an Exception: it must be named to be caught
FAILURES = (CheckpointException, *READING, OSError, EOFError, pickle.PickleError)


def fill(model: ByteGPT, device: torch.device, seed: int) -> None:
    """Give a sharded model on ``meta`` the numbers that one device would start from.

    Rank 0 draws them, on its CPU; every rank calls this, and gets its shards.
    """
    model.to_empty(device=device)  # memory for this rank's shards only
    torch.manual_seed(seed)
    whole = ByteGPT(model.sizes).state_dict() if is_rank_0() else {}
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, whole, options=options)


def all_folders(folder: Path) -> dict[int, Path]:
    """Steps -> the folder of that checkpoint, complete or not, by steps."""
    found: dict[int, Path] = {}
    if not folder.is_dir():
        return found
    for path in folder.iterdir():
        match = NAME.fullmatch(path.name)
        if match and path.is_dir():
            found[int(match[1])] = path
    return dict(sorted(found.items()))


def complete(folder: Path) -> dict[int, Path]:
    """Steps -> folder of each checkpoint that was completely written."""
    found = all_folders(folder)
    return {n: path for n, path in found.items() if (path / WRITTEN_LAST).exists()}


def newest(folder: Path) -> Path | None:
    """The folder of the newest complete checkpoint; None if there isn't one."""
    return next(reversed(complete(folder).values()), None)


def remove_incomplete(folder: Path) -> None:
    """Remove what killed saves left behind; no run may be saving there now."""
    finished = complete(folder)
    for steps, path in all_folders(folder).items():
        if steps not in finished:
            log(f"Removing {path}: a save that was never finished")
            shutil.rmtree(path)


def check_folder(folder: Path, option: str) -> None:
    """Make sure before a long run that checkpoints can be written to ``folder``.

    Raises:
        BadInput: it is a file or a checkpoint, or there is no folder to make it in.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{option} {folder} is a file: give the name of a folder")
    if (folder / WRITTEN_LAST).exists():
        raise BadInput(
            f"{option} {folder} is one checkpoint: give the folder it is in, "
            f"{folder.parent}"
        )
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{option} {folder}: cannot make this folder ({error.strerror}): choose "
            "another"
        ) from error


class Checkpoints:
    """Saves and loads a model and its optimizer, however they are sharded."""

    def __init__(self, folder: Path, model: nn.Module, optimizer, sizes: Sizes):
        self.folder, self.model, self.optimizer = folder, model, optimizer
        self.sizes = vars(sizes)
        self.pending: tuple[Path, Future] | None = None  # what is being saved
        self.not_saved = ""  # why the last save failed
        self.saved: list[Path] = []  # what this process has saved; may be emptied
        # A save in the background has collectives, too. In the default group they would
        # run between those of the steps, in another order on each rank.
        self.options = {"process_group": dist.new_group(backend="gloo")}
        if is_rank_0():
            remove_incomplete(folder)

    def save(self, steps_run: int, background: bool = False) -> None:
        """Write ``checkpoint-STEPS``; in the background, return when it is copied."""
        self.wait()  # a second save beside the first would need as much memory again
        model, optimizer = get_state_dict(self.model, self.optimizer)
        training = {"steps_run": steps_run, **self.sizes}
        state = {"model": model, "optimizer": optimizer, "training": training}
        path = self.folder / f"checkpoint-{steps_run}"
        try:
            # Every rank: each writes its own shards into files of its own.
            if background:
                future = dcp.async_save(state, checkpoint_id=path, **self.options)
                self.pending = path, future
                return
            dcp.save(state, checkpoint_id=path, **self.options)
        except FAILURES as error:
            self._failed(path, error)
        else:
            self._saved(path)

    def wait(self) -> None:
        """Return when what is being saved in the background is on the disk."""
        if self.pending:
            (path, future), self.pending = self.pending, None
            try:
                future.result()
            except FAILURES as error:
                self._failed(path, error)
            else:
                self._saved(path)

    def look(self) -> None:
        """Take note of a background save that is done, without waiting for it."""
        if self.pending and self.pending[1].done():
            self.wait()

    def _saved(self, path: Path) -> None:
        self.not_saved = ""
        self.saved.append(path)
        log(f"Saved {path}")

    def _failed(self, path: Path, error: BaseException) -> None:
        """Report it now and at the end, and do not lose the run because of it."""
        self.not_saved = (
            f"cannot write the checkpoint {path} ({_reason(error)}): those before it "
            "are unharmed; free some space or choose another --checkpoints"
        )
        log(f"Continuing without a checkpoint: {self.not_saved}")

    def load_newest(self) -> int:
        """Continue as if the run that saved had never stopped; the steps it had run.

        Raises:
            BadInput: a node lacks the newest checkpoint; it is damaged or another's.
        """
        box = [newest(self.folder)]
        # Every rank: the folder as rank 0 sees it, another rank's view may be older.
        dist.broadcast_object_list(box, src=0)
        path = box[0]
        if path is None:
            return 0
        nodes = [""] * dist.get_world_size()
        blind = ""
        if not (path / WRITTEN_LAST).exists():
            blind = socket.gethostname()
        dist.all_gather_object(nodes, blind)  # every rank
        lacking = ", ".join(sorted({*nodes} - {""}))
        if lacking:
            raise BadInput(
                f"{path} is not seen on {lacking}: give all nodes one folder"
            )
        steps_run = self._check(path)
        # Tensors of this grid's shapes, to be filled: each rank asks for its shards,
        # and reads from all files the pieces that lie in them.
        model, optimizer = get_state_dict(self.model, self.optimizer)
        _read({"model": model, "optimizer": optimizer}, path)
        states = {"model_state_dict": model, "optim_state_dict": optimizer}
        set_state_dict(self.model, self.optimizer, **states)
        log(f"Resuming from {path} after {steps_run} steps")
        return steps_run

    def _check(self, path: Path) -> int:
        """The steps that were run, if the checkpoint is one of this model."""
        training = {"steps_run": 0, **dict.fromkeys(self.sizes, 0)}
        _read({"training": training}, path)
        for name, own in self.sizes.items():
            if training[name] != own:
                raise BadInput(
                    f"{path} is of a model with --{name} {training[name]}, and this "
                    f"one has {own}: ask for the same or choose another --checkpoints"
                )
        return training["steps_run"]


def _read(state: dict, path: Path) -> None:
    """Fill the tensors of ``state`` in place from a checkpoint; every rank calls this.

    Raises:
        BadInput: the checkpoint lacks something, or cannot be read.
    """
    try:
        dcp.FileSystemReader(path).read_metadata()  # load would log a traceback, too
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one sentence is enough
            dcp.load(state, checkpoint_id=path)
    except FAILURES as error:
        raise BadInput(unreadable(path, error)) from error


def unreadable(path: Path, error: BaseException) -> str:
    """One sentence on a checkpoint that cannot be loaded, and what to do about it."""
    others = [other for other in complete(path.parent).values() if other != path]
    before = f"resume from {others[-1].name}" if others else "start from scratch"
    what = "is damaged or is no checkpoint of this program"
    return f"{path} {what} ({_reason(error)}): move it away to {before}"


def _reason(error: BaseException) -> str:
    """The first line of what went wrong, on the first rank on which it did."""
    if isinstance(error, CheckpointException) and error.failures:
        error = next(iter(error.failures.values()))[0]
    words = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
    return ": ".join(filter(None, [type(error).__name__, words.rstrip(".")]))
