"""Who prints, on which device a rank computes, and how a run ends."""

import argparse
import functools
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

import torch
import torch.distributed as dist

# Imported later, as by DDP, it keeps gloo's threads: a rank may abort (torch 2.13)
import torch.distributed.nn.functional
from torch.distributed.elastic.multiprocessing.errors import record
from torch.multiprocessing.spawn import ProcessExitedException
from torch.nn.parallel import DistributedDataParallel as DDP
from tqdm import tqdm

from common import launchers
from common.bad_input import BadInput

Result = TypeVar("Result")
REFUSED = 2  # exit status of a command whose input can't work, as of Unix commands
RANK_0_SPEAKS_S = 10  # seconds that another rank waits before it says why it ends
LARGEST_INT = 2**31 - 1
# Set to 1, it lets ranks share devices, through gloo: for tests on one GPU
SHARE = "WORKSHOP_SHARE_GPU"

if torch.__version__ < (2, 8):
    # There it waits for gloo's threads, which may wait for Python to free a tensor.
    _destroy = dist.destroy_process_group

    def _destroy_later(group: dist.ProcessGroup | None = None) -> None:
        time.sleep(1)  # the threads do it now
        _destroy(group)

    dist.destroy_process_group = _destroy_later

# tqdm's default lock is shared by processes: Python warns of it when a rank is killed
tqdm.set_lock(threading.RLock())
# mp.spawn reports each rank that it ends because another, which has said why, failed
logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)


def is_rank_0() -> bool:
    """Whether this is rank 0 of all nodes; before it joins, the launcher says so."""
    if dist.is_initialized():
        return dist.get_rank() == 0
    return launchers.told_rank() == "0"


def world_size() -> int:
    """How many ranks there are; 1 for a process that has not joined others."""
    return dist.get_world_size() if dist.is_initialized() else 1


def log(line: str, every_rank: bool = False) -> None:
    """Print a line at once, on rank 0 or on every rank, above a progress bar."""
    if every_rank or is_rank_0():
        # in one piece: ranks that share a terminal do not write into others' lines
        tqdm.write(line + "\n", end="")
        sys.stdout.flush()


def one_line_errors(function: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate what starts ranks and what a rank does: BadInput is one line, status 2.

    Any other exception is an error of the program, and is raised on. ``record`` also
    writes it to the file that torchrun has chosen: its report ends with the traceback
    of the rank that failed first.
    """

    @functools.wraps(function)
    def refusing(*args, **kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except BadInput as error:
            refuse(str(error))
        except ProcessExitedException as error:
            if error.exit_code != REFUSED:
                raise
            sys.exit(REFUSED)  # a rank of mp.spawn, which has said why

    return record(refusing)


def refuse(sentence: str) -> NoReturn:
    """Print the sentence, once for all ranks that say it, and end with status 2."""
    if not is_rank_0():
        _let_rank_0_speak()
    print(f"{Path(sys.argv[0]).name}: error: {sentence}", file=sys.stderr, flush=True)
    if dist.is_initialized():  # ranks inside a collective would hold up an orderly end
        os._exit(REFUSED)
    sys.exit(REFUSED)


def _let_rank_0_speak() -> None:
    """Wait for the launcher to end this rank, because rank 0 has ended.

    Nearly all bad input is that of all ranks: rank 0 says it, and torchrun or mp.spawn
    ends the others within a second. What only this rank refuses is said after the wait.
    """
    time.sleep(RANK_0_SPEAKS_S)


class Parser(argparse.ArgumentParser):
    """A parser that shows a program's docstring, and whose errors are one line."""

    def __init__(self, description: str | None):
        raw = argparse.RawDescriptionHelpFormatter
        super().__init__(description=description, formatter_class=raw)

    def error(self, message: str) -> NoReturn:
        refuse(f"{message} (--help shows the usage)")


def positive_int(text: str) -> int:
    """The whole number above 0, below 2^31, that ``text`` spells; an argparse type.

    Raises:
        BadInput: it is no such number.
    """
    if not (text.isascii() and text.isdigit() and int(text)):
        raise BadInput(f"{text!r} is not a whole number above 0")
    if int(text) > LARGEST_INT:
        raise BadInput(f"{text!r} is too large: choose at most {LARGEST_INT}")
    return int(text)


def positive_float(text: str) -> float:
    """The number above 0, but no huge one, that ``text`` spells; an argparse type."""
    if not 0 < float(text) < 1e12:
        raise BadInput(f"{text!r} is not a number above 0 and below 1e12")
    return float(text)


def output_file(text: str) -> Path:
    """The file ``text``, refused before a long run that couldn't write it."""
    path = Path(text)
    if path.is_dir():
        raise BadInput(f"{path} is a folder: give the name of a file")
    try:
        if is_rank_0():  # other nodes may not even see the folder
            tempfile.TemporaryFile(dir=path.parent).close()  # a full disk refuses, too
    except OSError as error:
        why = f"cannot write in the folder {path.parent} ({error.strerror})"
        raise BadInput(f"{path}: {why}: create it or choose another") from None
    return path


def write_json(path: Path | None, content: object) -> None:
    """Write to the file that was asked for, if any, what a run found; on rank 0."""
    try:
        if path and is_rank_0():
            path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from error


def count_accelerators() -> int:
    """Accelerators for the processes of this machine; 0: use the CPU."""
    if not torch.accelerator.is_available():  # else PyTorch 2.6 and 2.7 may raise below
        return 0
    # Apple's MPS has one device, no float64, and no backend of its own
    mps = str(torch.accelerator.current_accelerator()) == "mps"
    return 0 if mps else torch.accelerator.device_count()


def choose_device(local_rank: int = 0) -> torch.device:
    """Accelerator number ``local_rank`` of this machine, else one core of the CPU."""
    count = count_accelerators()
    if not count:
        _refuse_unused_gpus()
        if "OMP_NUM_THREADS" not in os.environ:  # else: a thread for every core
            torch.set_num_threads(1)
        return torch.device("cpu")
    device = torch.accelerator.current_accelerator()
    if count == 1 and _srun_shows_each_task_its_own_device(local_rank):
        local_rank = 0
    if shares_devices():
        local_rank %= count
    if local_rank >= count:
        raise BadInput(
            f"local rank {local_rank} has no {device.type} device, as this machine "
            f"has {count}: start no more processes here, or put CUDA_VISIBLE_DEVICES= "
            "before the command, which then computes on the CPU"
        )
    # collectives and "cuda" without a number go to the current device
    torch.accelerator.set_device_index(local_rank)
    return torch.device(device.type, local_rank)


def shares_devices() -> bool:
    """Whether several ranks may compute on one device: for tests, never for speed."""
    return os.environ.get(SHARE, "0") not in ("", "0")


def _refuse_unused_gpus() -> None:
    """A job that was given GPUs which this PyTorch can't use would train without them.

    The GPUs of a practice cluster are made up.
    """
    allowed = "WORKSHOP_CPU" in os.environ or "WORKSHOP_CLUSTER" in os.environ
    for name in ("SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"):
        given = os.environ.get(name, "0")
        if given != "0" and not allowed:
            raise BadInput(
                f"the job has GPUs ({name}={given}), but this PyTorch "
                f"({torch.__version__}) finds none: install a build for the node's "
                "driver, or compute on the CPU after export WORKSHOP_CPU=1"
            )


def _srun_shows_each_task_its_own_device(local_rank: int) -> bool:
    """With --gpu-bind=single:1 a task sees one of the devices that its node has."""
    by_srun = launchers.find_launcher() == "srun"
    return by_srun and local_rank < int(os.environ.get("SLURM_GPUS_ON_NODE", 0))


def describe_world(device: torch.device) -> str:
    """What computes, for the line that shows the configuration."""
    threads = torch.get_num_threads()
    name = f"CPU, {threads} threads"
    if threads == 1:
        name = "CPU, 1 thread"
    if device.type != "cpu":
        name = f"{device} ({torch.get_device_module(device).get_device_name(device)})"
    if not dist.is_initialized():
        return name
    return f"{world_size()} ranks, each on {name}, backend {dist.get_backend()}"


def rank_seed(seed: int, number: int) -> int:
    """A seed that no other rank has, nor this rank at another number.

    ``number`` is that of the epoch or of the step. A resumed run gets the same again.
    """
    first_of_number = seed + number * dist.get_world_size()
    return first_of_number + dist.get_rank()


def seed_rank(seed: int, number: int) -> None:
    """Seed the random numbers of this rank, on its device too, with `rank_seed`."""
    torch.manual_seed(rank_seed(seed, number))


def settle_buckets(ddp_model: DDP, example: torch.Tensor) -> None:
    """Let DDP lay out its buckets now, and not after the first step; every rank.

    DDP does it after its first backward pass. The first step of a resumed run would
    then add up gradients in another order than a run that never stopped: lesson 06.
    ``example`` is one input [1, ...] of the model, on the model's device.
    """
    training = ddp_model.training
    ddp_model.eval()  # dropout draws no random numbers
    ddp_model(example).sum().backward()
    ddp_model.zero_grad()
    ddp_model.train(training)


def prepare_spawn(nprocs: int | None) -> int:
    """How many ranks ``mp.spawn`` starts; they inherit where to connect from here.

    Raises:
        BadInput: a launcher started this process: each of its ranks would spawn, too.
    """
    rank = os.environ.get("RANK")
    if rank:
        raise BadInput(f"RANK={rank} is set: unset RANK and start this by plain python")
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(launchers.reserve_port())
    return nprocs or count_accelerators() or 2
