"""Times the steps of an unchanged program, from inside its processes.

``src/instruments/18_why_slow.py`` copies this file into a folder of PYTHONPATH, as
``sitecustomize.py``. Every Python that the command starts then runs it first. It times
each step between two calls of ``optimizer.step()``, writes what it found beside itself,
and ends the process after a few steps. With ``silent`` in its plan, gradients aren't
reduced, and calls of ``torch.distributed`` return at once after the first step.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import socket
import sys
import time
from collections import Counter
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader

FOLDER = Path(__file__).resolve().parent
PATIENCE = 60  # seconds in which every rank should have written its file
PROBES = 15  # all-reduces of one size
SCALAR = 8  # bytes: a loss or a count, in up to 64 bits
# may be left out: a tensor that is there already keeps its numbers
QUIET = (
    *("all_reduce", "reduce", "broadcast", "barrier", "all_gather", "reduce_scatter"),
    *("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"),
    *("all_gather_single", "reduce_scatter_single"),  # FSDP's, since PyTorch 2.13
)
TIMED = ("all_gather_object", "gather_object", "broadcast_object_list", "gather")


class _Clock:
    """Adds up the seconds of each part of a step; at any moment one part runs."""

    def __init__(self, plan: dict):
        self.plan, self.steps, self.part, self.now = plan, [], "loop", Counter()
        self.rank, self.world_size, self.optimizer = 0, 1, None
        self.workers = 0  # the most that a DataLoader of this rank has
        self.since, self.cpu_since = time.perf_counter(), time.process_time()

    @property
    def silent(self) -> bool:
        """Whether calls are left out now: not while the program sets itself up."""
        return self.plan["silent"] and bool(self.steps)

    def switch(self, part: str) -> str:
        """End the part that runs, and begin another one."""
        now, cpu = time.perf_counter(), time.process_time()
        self.now[self.part] += now - self.since
        self.now[self.part + " cpu"] += cpu - self.cpu_since
        ended, self.part, self.since, self.cpu_since = self.part, part, now, cpu
        return ended

    @contextlib.contextmanager
    def during(self, part: str):
        interrupted = self.switch(part)
        try:
            yield
        finally:
            self.switch(interrupted)

    def count(self, size: int) -> None:
        """One more message of this step, of ``size`` bytes."""
        self.now["calls"] += 1
        self.now["bytes"] += size
        self.now["scalars"] += size <= SCALAR


class _Finished:
    """Stands for the work of an asynchronous call that was left out."""

    def wait(self, *_args) -> bool:
        return True

    is_completed = wait


def _accelerator() -> bool:
    return dist.is_initialized() and dist.get_backend() not in ("gloo", "mpi")


def _forward_begins(clock: _Clock, *_args) -> None:
    if clock.part == "loop":
        clock.switch("compute")


def _step_ended(clock: _Clock, optimizer, *_args) -> None:
    """A step ends with the first optimizer's step: what follows is the next one."""
    clock.optimizer = clock.optimizer or id(optimizer)
    if id(optimizer) != clock.optimizer:
        return
    if _accelerator():
        torch.accelerator.synchronize()  # the host is far ahead of it
    clock.switch("loop")
    if dist.is_initialized():  # else it's one process
        clock.rank, clock.world_size = dist.get_rank(), dist.get_world_size()
    clock.steps.append(dict(clock.now))
    clock.now.clear()
    if len(clock.steps) == clock.plan["steps"]:
        probe = _probe(clock) if clock.plan["silent"] else []
        _write(clock, probe)
        _leave(clock)


def _probe(clock: _Clock) -> list[float]:
    """Seconds of an all-reduce of one number, and of a message of the usual size."""
    calls = sum(step.get("calls", 0) for step in clock.steps[1:])
    size = sum(step.get("bytes", 0) for step in clock.steps[1:]) // max(calls, 1)
    device = torch.accelerator.current_accelerator() if _accelerator() else "cpu"
    clock.plan["silent"] = False  # from here on all calls are real again
    found = []
    for numel in (1, max(size // 4, 1)):
        tensor, seconds = torch.zeros(numel, device=device), []
        for _ in range(PROBES):
            start = time.perf_counter()
            dist.all_reduce(tensor)
            tensor.sum().item()
            seconds.append(time.perf_counter() - start)
        found.append(min(seconds))
    return found


def _write(clock: _Clock, probe: list[float]) -> None:
    cores = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
    found = {
        "rank": clock.rank,
        "steps": clock.steps,
        "probe": probe,
        "host": socket.gethostname(),
        "cores": sorted(cores),
        "threads": torch.get_num_threads(),
        "on_cpu": not _accelerator(),
        "workers": clock.workers,
    }
    unfinished = FOLDER / f"unfinished_{clock.rank}"
    unfinished.write_text(json.dumps(found), encoding="utf-8")
    unfinished.rename(FOLDER / f"rank_{clock.rank}.json")


def _leave(clock: _Clock) -> None:
    """End this process once the others no longer need it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if len(list(FOLDER.glob("rank_*.json"))) == clock.world_size:
            break
        time.sleep(0.01)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _ends_early(clock: _Clock) -> None:
    if clock.steps and not (FOLDER / f"rank_{clock.rank}.json").exists():
        _write(clock, [])


def _watch_call(clock: _Clock, name: str) -> None:
    """Count the calls of a function of torch.distributed; leave them out if silent."""
    real = getattr(dist, name)

    @functools.wraps(real)
    def call(*args, **kwargs):
        given = [value for value in (*args, *kwargs.values()) if value is not None]
        sizes = [value.nbytes for value in given if isinstance(value, torch.Tensor)]
        clock.count(max(sizes, default=0))
        if clock.silent and name in QUIET:
            wanted = kwargs.get("async_op") or any(value is True for value in args)
            return _Finished() if wanted else None
        with clock.during("communication"):
            return real(*args, **kwargs)

    setattr(dist, name, call)


def _watch_ddp(clock: _Clock) -> None:
    """Let DDP do everything but reduce: for measuring, torch has noop_hook."""
    initialize, register = DDP.__init__, DDP.register_comm_hook

    def count_only(state, bucket):
        clock.count(bucket.buffer().nbytes)
        clock.now["backwards"] += bucket.is_last()
        return noop_hook(state, bucket)

    @functools.wraps(initialize)
    def init(self, *args, **kwargs):
        initialize(self, *args, **kwargs)
        self.broadcast_buffers = False
        register(self, None, count_only)

    def register_nothing(self, state, hook):
        """In place of the program's own hook."""

    DDP.__init__ = init
    DDP.register_comm_hook = register_nothing


def _watch_data(clock: _Clock) -> None:
    iterate = DataLoader.__iter__

    def timed(loader):
        clock.workers = max(clock.workers, loader.num_workers)
        with clock.during("data"):
            batches = iter(iterate(loader))
        while True:
            with clock.during("data"):
                batch = next(batches, timed)
            if batch is timed:
                return
            yield batch

    DataLoader.__iter__ = timed


def _watch_saving(clock: _Clock) -> None:
    """Time what is saved; weights of a silent run replace no file of the reader."""
    save, replace, rename, held_back = torch.save, os.replace, os.rename, set()

    def timed(obj, f, *args, **kwargs):
        if clock.plan["silent"]:
            held_back.add(str(getattr(f, "name", f)))
            return
        with clock.during("saving"):
            save(obj, f, *args, **kwargs)

    def unless_held_back(real, source, target, **kwargs):
        if str(source) not in held_back:
            real(source, target, **kwargs)

    torch.save = timed
    os.replace = functools.partial(unless_held_back, replace)
    os.rename = functools.partial(unless_held_back, rename)


def _keep_the_threads(number: int) -> None:
    """In place of torch.set_num_threads: the plan has said how many."""


def _watch(plan: dict) -> None:
    clock = _Clock(plan)
    register_module_forward_pre_hook(functools.partial(_forward_begins, clock))
    register_optimizer_step_post_hook(functools.partial(_step_ended, clock))
    for name in (*QUIET, *TIMED):
        if hasattr(dist, name):
            _watch_call(clock, name)
    _watch_data(clock)
    _watch_saving(clock)
    if plan["silent"]:
        _watch_ddp(clock)
    if plan["threads"]:
        torch.set_num_threads(plan["threads"])
        torch.set_num_threads = _keep_the_threads
    atexit.register(_ends_early, clock)


if __name__ == "sitecustomize":
    _wanted = json.loads((FOLDER / "plan.json").read_text(encoding="utf-8"))
    _watch({"silent": False, "threads": 0} | _wanted)
