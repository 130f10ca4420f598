"""Who prints, on which device a rank computes, and how a run ends.

A process that has not joined others is a world of one, and its rank is 0.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

import torch
import torch.distributed as dist

# Imported before init_process_group: its functions take the default group as a default
# argument. Imported later, it keeps that group's threads alive after
# destroy_process_group, and a rank may abort when Python ends (torch 2.13, gloo).
import torch.distributed.nn.functional
from torch.multiprocessing.spawn import ProcessExitedException
from tqdm import tqdm

Result = TypeVar("Result")
PATIENCE = 10  # seconds
RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")

# tqdm's default lock is shared by processes: Python warns of it when a rank is killed
tqdm.set_lock(threading.RLock())


class BadInput(Exception):
    """What the user gave cannot work: one sentence that names it and the cure."""


def is_rank_0() -> bool:
    """Whether this is the rank that prints and writes, of all ranks on all nodes."""
    return not dist.is_initialized() or dist.get_rank() == 0


def world_size() -> int:
    """How many ranks there are; 1 for a process that has not joined others."""
    return dist.get_world_size() if dist.is_initialized() else 1


def log(line: str, every_rank: bool = False) -> None:
    """Print a line at once, on rank 0 or on every rank, above a progress bar."""
    if every_rank or is_rank_0():
        # in one piece: ranks that share a terminal do not write into others' lines
        tqdm.write(line + "\n", end="")
        sys.stdout.flush()


def no_bar() -> bool | None:
    """The ``disable`` of a tqdm bar: shown on rank 0's terminal, if it has one."""
    return None if is_rank_0() else True


def speaks_first() -> bool:
    """Whether this process reports what all ranks find wrong before they have met."""
    return next((os.environ[name] for name in RANK if name in os.environ), "0") == "0"


def one_line_errors(main: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate what starts ranks, and what a rank does: one line, status 2.

    Rank 0 reports what all ranks find. The others wait for the launcher to end them;
    one that is still there after :data:`PATIENCE` had an error of its own: it reports.
    """

    @functools.wraps(main)
    def guarded(*args, **kwargs) -> Result:
        try:
            return main(*args, **kwargs)
        except ProcessExitedException as error:
            if error.exit_code != 2:  # with 2, the rank itself has said why
                name = error.signal_name or f"exit status {error.exit_code}"
                _complain(f"rank {error.error_index} ended by {name}, so all end")
            sys.exit(error.exit_code if error.exit_code > 0 else 1)
        except BadInput as error:
            met = dist.is_initialized()  # a spawned rank knows its number only then
            if not (is_rank_0() if met else speaks_first()):
                time.sleep(PATIENCE)
            _complain(str(error))
            if met:  # at once: ranks inside a collective would hold up an orderly end
                os._exit(2)
            sys.exit(2)

    return guarded


def _complain(sentence: str) -> None:
    print(f"{Path(sys.argv[0]).name}: error: {sentence}", file=sys.stderr, flush=True)


class Parser(argparse.ArgumentParser):
    """A parser that shows a program's docstring, and whose errors are one line."""

    def __init__(self, description: str | None):
        raw = argparse.RawDescriptionHelpFormatter
        super().__init__(description=description, formatter_class=raw)

    def error(self, message: str) -> NoReturn:
        if not speaks_first():
            time.sleep(PATIENCE)
        self.exit(2, f"{self.prog}: error: {message} (--help shows the usage)\n")


def positive_int(text: str) -> int:
    """The whole number above 0 that ``text`` spells; an argparse type."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def positive_float(text: str) -> float:
    """The finite number above 0 that ``text`` spells; an argparse type."""
    if not 0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return float(text)


def check_output_file(path: Path, option: str) -> None:
    """Refuse before a long run a ``path`` that cannot be written at its end."""
    if path.is_dir():
        raise BadInput(f"{option} {path} is a folder: give the name of a file")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()  # a full disk refuses, too
    except OSError as error:
        raise BadInput(
            f"{option} {path}: cannot write in the folder {path.parent} "
            f"({error.strerror}): create it or choose another"
        ) from error


def write_json(path: Path, option: str, content: object) -> None:
    """Write what a run found to the file that ``option`` names."""
    try:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {option} {path}: {error.strerror}") from error


def count_accelerators() -> int:
    """Accelerators that processes of this machine can share out; 0: use the CPU."""
    accelerator = torch.accelerator.current_accelerator()
    # Apple's MPS has one device, no float64, and no backend of its own
    usable = accelerator is not None and accelerator.type != "mps"
    if not (usable and torch.accelerator.is_available()):
        return 0
    return torch.accelerator.device_count()


def choose_device(local_rank: int = 0) -> torch.device:
    """Accelerator number ``local_rank`` of this machine, else one core of the CPU."""
    count = count_accelerators()
    if not count:
        if "OMP_NUM_THREADS" not in os.environ:  # else: a thread for every core
            torch.set_num_threads(1)
        return torch.device("cpu")
    accelerator = torch.accelerator.current_accelerator()
    local_rank = 0 if count == 1 and _shown_one_of_many() else local_rank
    if local_rank >= count:
        raise BadInput(
            f"local rank {local_rank} has no {accelerator.type} device: this machine "
            f"has {count}, so start at most {count} processes on it, or hide them all "
            "(CUDA_VISIBLE_DEVICES= on NVIDIA) to compute on the CPU"
        )
    # collectives and "cuda" without a number go to the current device
    torch.accelerator.set_device_index(local_rank)
    return torch.device(accelerator.type, local_rank)


def _shown_one_of_many() -> bool:
    """Whether srun or mpirun shows each process its own device: --gpu-bind=single:1."""
    shown = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun shows all its ranks the same
        return False
    task = any(name in os.environ for name in ("SLURM_STEP_ID", *RANK[1:3]))
    values = [os.environ[name] for name in shown if os.environ.get(name)]
    return task and any("," not in value for value in values)


def choose_backend(device: torch.device) -> str:
    """``nccl`` for NVIDIA and AMD GPUs, ``xccl`` for Intel's, ``gloo`` for the CPU."""
    return dist.get_default_backend_for_device(device.type)


def label(device: torch.device) -> str:
    """Who prints a line of a log: ``CPU0``, or ``rank 0 of 2``."""
    if dist.is_initialized():
        return f"rank {dist.get_rank()} of {dist.get_world_size()}"
    return f"{device.type.upper()}{device.index or 0}"


def describe_world(device: torch.device) -> str:
    """What computes, for the line that shows the configuration."""
    if device.type == "cpu":
        threads = torch.get_num_threads()
        name = f"CPU, {threads} thread{'s' if threads > 1 else ''}"
    else:
        found = getattr(torch, device.type).get_device_name(device.index)
        name = f"{device} ({found})"
    if not dist.is_initialized():
        return name
    return f"{world_size()} ranks, each on {name}, backend {dist.get_backend()}"


class Place(NamedTuple):
    """Where a rank is among all ranks, as torchrun numbers them."""

    rank: int
    local_rank: int  # on this node: picks the device
    node_rank: int


def torchrun_place() -> Place:
    """The place of this process; refuses if torchrun did not start it."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        raise BadInput(
            "torchrun did not start this process: "
            "torchrun --standalone --nproc-per-node=2 SCRIPT ..."
        )
    names = ("RANK", "LOCAL_RANK", "GROUP_RANK")
    if missing := [name for name in names if name not in os.environ]:
        raise BadInput(f"{', '.join(missing)} not set, which torchrun sets")
    return Place(*(int(os.environ[name]) for name in names))


def join(program: str) -> torch.device:
    """Join the other ranks that torchrun has started; returns this rank's device."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        raise BadInput(
            "one rank has nobody to talk to: start at least two, for example with "
            f"torchrun --standalone --nproc-per-node=4 src/{program}"
        )
    device = choose_device(torchrun_place().local_rank)
    backend = choose_backend(device)
    # every rank must reach this line: it returns when the last one has joined
    dist.init_process_group(backend, timeout=timedelta(seconds=60))
    log(f"{world_size()} ranks on {device.type} through {backend}")
    return device
