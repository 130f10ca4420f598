"""What happens inside one rank: limits, the learner's file, one check, one report.

The supervisor forks this process from a warm parent that has imported torch and
never computed. The rank reports over a socket and then stays alive until the
supervisor ends it, so that no other rank ever sees "connection closed by peer"
because of one that was merely quicker. It leaves by ``os._exit``: destructors of
process groups, which can hang, are never run.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import ctypes
import datetime
import faulthandler
import importlib.machinery
import inspect
import json
import linecache
import os
import random
import re
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
import types
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from grader import expect
from grader.engine import ledger
from grader.verdicts import suspicion

# The rank's row in the memory it shares with the supervisor (float64 each).
IN_COMM, CALLS, PHASE, CPU, BEAT, FIELDS = 0, 1, 2, 3, 4, 5
STARTING, LOADING, CHECKING, REPORTED = 0.0, 1.0, 2.0, 3.0
BEAT_SECONDS = 0.04
MAX_MESSAGE = 2000
MAX_FRAMES = 12

_exit = os._exit
_DISTRIBUTED = os.path.join(ledger.TORCH, "distributed") + os.sep
_DDP = os.path.join(ledger.TORCH, "nn", "parallel", "distributed.py")
_WAITS = re.compile(r"\b(wait|synchronize|value|get)\(")
_ADDRESS = re.compile(r" (object )?at 0x[0-9a-f]+")
_PR_SET_PDEATHSIG = 1


def main(job: dict, rank: int, channel: socket.socket, output: int, state) -> None:
    """Run the job's check as ``rank`` and report; never returns.

    Args:
        job: what :class:`grader.engine.engine.Engine` sends; plain data.
        output: file descriptor that becomes stdout and stderr.
        state: this rank's ``FIELDS`` float64 numbers, shared with the supervisor.
    """
    reporter = Reporter(channel)
    try:
        _enter(job, rank, output)
        session = Session(job, rank, state, reporter)
        threading.Thread(target=session.watch, daemon=True, name="grader").start()
        session.run()
        threading.Event().wait()  # until the supervisor ends this rank
    except BaseException as error:  # a fault of the grader, never of the learner
        text = "".join(traceback.format_exception(error))[-MAX_MESSAGE:]
        reporter.send({"status": "broken", "message": text})
        _exit(70)


class Reporter:
    """Sends JSON lines to the supervisor, from this process only.

    A process that the learner's code forks inherits the socket; anything it
    would report is dropped, and it ends.
    """

    def __init__(self, channel: socket.socket):
        self.channel, self._pid, self._lock = channel, os.getpid(), threading.Lock()

    @property
    def from_this_process(self) -> bool:
        """False in a process that the learner's code forked."""
        return os.getpid() == self._pid

    def send(self, message: dict[str, Any]) -> None:
        if not self.from_this_process:
            _exit(0)
        data = json.dumps(message, default=str).encode("utf-8", "replace") + b"\n"
        with self._lock:
            self.channel.sendall(data)


class Session:
    """One check in one rank."""

    def __init__(self, job: dict, rank: int, state, reporter: Reporter):
        self.job, self.rank, self.state, self.reporter = job, rank, state, reporter
        self.path = job["exercise_path"]
        self.ledger = ledger.Ledger(self.path)
        self.main_thread = threading.main_thread().ident or 0
        self.originals: dict[str, Any] = {}
        self.cpu_of_watch = 0.0
        self.scheduler: Any = None

    # -- the main thread ---------------------------------------------------------
    def run(self) -> None:
        """Load the exercise, call the check, report how it went."""
        report: dict[str, Any]
        try:
            report = self._check()
        except expect.Mismatch as error:
            report = {
                "status": "mismatch",
                "what": error.what,
                "problem": str(error.problem)[:MAX_MESSAGE],
                "suspicion": error.suspicion,
                "way": error.way,
                **self._where(error),
            }
        except SystemExit as error:
            report = {"status": "exit", "code": str(error.code), **self._where(error)}
        except BaseException as error:
            report = {"status": "raised", **self._exception(error)}
        report["notes"] = self.scheduler.notes if self.scheduler else []
        report["phase"] = self.state[PHASE]
        report["passed"] = expect.passed
        report["ledger"] = self.ledger.report()
        report["calls"] = len(self.ledger.rows)
        report |= self._what_was_left()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        self.state[PHASE] = REPORTED
        self.reporter.send(report)

    def _check(self) -> dict[str, Any]:
        self._record_how_it_leaves()
        _fork_safe_seeds(self.job["seed"])
        self.originals = _fingerprint()
        self.state[PHASE] = LOADING
        exercise = self._load_exercise()
        check = _load_check(self.job["check_path"], self.job["function"])
        self._rendezvous()
        self.state[PHASE] = CHECKING
        with self.ledger:
            check(**self._arguments(check, exercise))
        return {"status": "ok"}

    def _load_exercise(self) -> types.ModuleType | None:
        """The learner's module, made from the source that all ranks share."""
        source, name = self.job["source"], self.job["exercise"]
        linecache.cache[self.path] = (
            len(source),
            None,
            source.splitlines(keepends=True),
            self.path,
        )
        if not self.path.endswith(".py"):
            return None
        module = types.ModuleType(name)
        module.__file__ = os.path.join(os.getcwd(), os.path.basename(self.path))
        module.__spec__ = importlib.machinery.ModuleSpec(
            name, None, origin=module.__file__
        )
        sys.modules[name] = module
        exec(compile(source, self.path, "exec"), module.__dict__)
        return module

    def _rendezvous(self) -> None:
        """Join the group by a file: no port, no name look-up, 3 ms."""
        store = self.job["store"]
        world_size = self.job["world_size"]
        _keep_groups_alive()
        if not self.job["init"]:
            return _env_rendezvous_by_file(store, self.rank, world_size)
        dist.init_process_group(
            "gloo",
            store=dist.FileStore(store, world_size),
            rank=self.rank,
            world_size=world_size,
            timeout=datetime.timedelta(seconds=300),
        )
        return None

    def _arguments(self, check, exercise) -> dict[str, Any]:
        """What the check asks for by the names of its parameters."""
        known = {
            "exercise": exercise,
            "exercise_path": Path.cwd() / os.path.basename(self.path),
            "rank": self.rank,
            "world_size": self.job["world_size"],
            "seed": self.job["seed"],
            "ledger": self.ledger,
            "shared_dir": Path.cwd(),
            "scheduler": self._scheduler(),
        }
        names = inspect.signature(check).parameters
        if unknown := [name for name in names if name not in known]:
            raise TypeError(
                f"a check cannot ask for {', '.join(unknown)}: "
                f"it can ask for {', '.join(known)}"
            )
        return {name: known[name] for name in names}

    def _scheduler(self):
        """What job scripts are submitted to, if the check asks for it."""
        asked = self.job.get("scheduler")
        if asked is None:
            return None
        from grader.jobs.scheduler import Scheduler

        self.scheduler = Scheduler(Path.cwd(), **asked)
        return self.scheduler

    # -- what is told of an exception --------------------------------------------
    def _where(self, error: BaseException) -> dict[str, Any]:
        """The frames of the learner's file and of the check, the innermost last."""
        frames = [
            {
                "line": frame.lineno,
                "function": frame.name,
                "text": (frame.line or "").strip()[:200],
                "mine": frame.filename == self.path,
                "check": frame.filename == self.job["check_path"],
                "file": os.path.basename(frame.filename),
            }
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename in (self.path, self.job["check_path"])
        ]
        if isinstance(line := getattr(error, "line_of_script", None), int):
            text = linecache.getline(self.path, line).strip()
            place = {"line": line, "function": "", "text": text, "file": self.path}
            frames.append({**place, "mine": True, "check": False})
        return {"frames": frames[-MAX_FRAMES:]}

    def _exception(self, error: BaseException) -> dict[str, Any]:
        try:
            message = str(error)
        except BaseException:
            message = "(its message cannot be shown)"
        if isinstance(error, SyntaxError) and error.filename == self.path:
            message = f"{error.msg} (line {error.lineno})"
        cut = _ADDRESS.sub("", message[:MAX_MESSAGE])
        kind = type(error).__name__
        return {
            "type": kind,
            "message": cut,
            "length": len(message),
            "suspicion": suspicion.of_exception(kind, cut),
            **self._where(error),
        }

    def _what_was_left(self) -> dict[str, Any]:
        """Threads still running, a missing folder, functions that were replaced."""
        threads = [
            thread.name
            for thread in threading.enumerate()
            if thread.ident != self.main_thread
            and not thread.daemon
            and thread.is_alive()
        ]
        try:
            gone = not os.path.isdir(os.getcwd())
        except OSError:
            gone = True
        return {
            "threads": threads,
            "folder_gone": gone,
            "tampered": _changed(self.originals),
        }

    def _record_how_it_leaves(self) -> None:
        """Have calls that end a process report the line they are called from."""

        def recorded(module, name):
            original = getattr(module, name)

            def leaving(*args, **kwargs):
                mine = self.reporter.from_this_process
                ends = name in ("_exit", "abort") or args[:1] in ((os.getpid(),), (0,))
                if mine and ends:
                    frame = self._learners_frame(sys._getframe(1))
                    how = f"os.{name}({', '.join(map(repr, args))})"
                    self.reporter.send({"status": "leaving", "how": how, **frame})
                return original(*args, **kwargs)

            setattr(module, name, leaving)

        for name in ("_exit", "abort", "kill", "killpg"):
            recorded(os, name)

    # -- the watching thread -----------------------------------------------------
    def watch(self) -> None:
        """Tell the supervisor 25 times a second whether this rank communicates.

        Answers its requests, too; ends the rank when it is gone.
        """
        channel = self.reporter.channel
        while True:
            self._beat()
            ready, _, _ = select.select([channel], [], [], BEAT_SECONDS)
            if not ready:
                continue
            command = channel.recv(64)
            if not command:
                _exit(0)
            if self.state[PHASE] != REPORTED:
                self.reporter.send(self._snapshot())

    def _beat(self) -> None:
        state = self.state
        state[IN_COMM] = 1.0 if _communicates(self._main_frame()) else 0.0
        state[CALLS] = float(len(self.ledger.rows))
        # without what this thread itself uses, which is no sign of life
        state[CPU] = time.process_time() - time.thread_time()
        state[BEAT] = time.monotonic()

    def _main_frame(self):
        return sys._current_frames().get(self.main_thread)

    def _snapshot(self) -> dict[str, Any]:
        """Where the main thread is, for the verdict on a rank that did not end."""
        frame = self._main_frame()
        stack = [
            {
                "file": os.path.basename(f.f_code.co_filename),
                "line": number,
                "function": f.f_code.co_name,
                "mine": f.f_code.co_filename == self.path,
                "check": f.f_code.co_filename == self.job["check_path"],
            }
            for f, number in traceback.walk_stack(frame)
            if not f.f_code.co_filename.startswith(ledger.GRADER)
        ]
        return {
            "status": "stuck",
            "phase": self.state[PHASE],
            "in_comm": _communicates(frame),
            "passed": expect.passed,
            "ledger": self.ledger.report(),
            "calls": len(self.ledger.rows),
            "stack": stack[:40],
            **self._learners_frame(frame),
        }

    def _learners_frame(self, frame) -> dict[str, Any]:
        """Line and text of the innermost frame in the learner's file."""
        for f, number in traceback.walk_stack(frame):
            if f.f_code.co_filename == self.path:
                text = linecache.getline(self.path, number or 0).strip()
                return {"line": number, "text": text[:200]}
        return {"line": None, "text": ""}


# -- entering the rank -----------------------------------------------------------
def _enter(job: dict, rank: int, output: int) -> None:
    """Own process group, limits, environment, folder and output of a rank."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115, open while the rank lives
    sys.stdout = open(1, "w", closefd=False, buffering=1, errors="replace")  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="replace")  # noqa: SIM115
    os.chdir(job["folder"])
    sys.argv = [job["exercise"]]
    sys.path.append(job["folder"])
    crash = open(os.path.join(job["private"], f"crash{rank}"), "w")  # noqa: SIM115
    stack = open(os.path.join(job["private"], f"stack{rank}"), "w")  # noqa: SIM115
    faulthandler.enable(crash, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_FSIZE, job["file_bytes"])
    _limit(resource.RLIMIT_DATA, _data_bytes() + job["memory_bytes"])
    for name in [n for n in os.environ if n.startswith(("SLURM_", "OMPI_", "PMI"))]:
        del os.environ[name]
    world_size = str(job["world_size"])
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=world_size,
        LOCAL_WORLD_SIZE=world_size,
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="29500",
    )
    torch.set_num_threads(1)


def _limit(which: int, amount: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        amount = min(amount, hard)
    resource.setrlimit(which, (amount, amount))


def _data_bytes() -> int:
    """The private writable memory this process has already."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def _fork_safe_seeds(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)


def _load_check(path: str, function: str):
    """The check function, with pytest's explanations of plain ``assert``."""
    from _pytest.assertion.rewrite import rewrite_asserts

    source = Path(path).read_bytes()
    tree = ast.parse(source, path)
    rewrite_asserts(tree, source)
    module = types.ModuleType(Path(path).stem)
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compile(tree, path, "exec"), module.__dict__)
    return getattr(module, function)


_kept: list[Any] = []


def _keep_groups_alive() -> None:
    """Never let a destructor drop the last reference to a gloo group.

    A DDP object that outlives ``destroy_process_group`` would join gloo's threads
    while it holds the GIL, and hang; that must not look like a deadlock here.
    """
    module = dist.distributed_c10d
    helper = module._new_process_group_helper

    def keeping(*args, **kwargs):
        group = helper(*args, **kwargs)
        _kept.append(group)
        return group

    module._new_process_group_helper = keeping


def _env_rendezvous_by_file(store: str, rank: int, world_size: int) -> None:
    """Let the learner's own ``init_process_group("gloo")`` meet through a file."""
    handlers = dist.rendezvous.__globals__["_rendezvous_handlers"]
    count = 0

    def env(url, timeout=None, **kwargs):
        nonlocal count
        count += 1
        yield dist.FileStore(f"{store}.{count}", world_size), rank, world_size

    handlers["env"] = env


# -- is this rank inside torch.distributed? --------------------------------------
def _communicates(frame) -> bool:
    """Whether the innermost frames, up to the first outside torch, communicate.

    ``work.wait()`` is C code called from the learner's own line, so that line is
    read; a backward pass may wait for DDP's buckets.
    """
    if frame is None:
        return False
    # a frame seen from another thread may be between two lines: its number is None
    first = True
    for f, number in traceback.walk_stack(frame):
        name = f.f_code.co_filename
        if name.startswith(_DISTRIBUTED) or f.f_code.co_name == "_engine_run_backward":
            return True
        if not name.startswith(ledger.TORCH):
            return first and bool(_WAITS.search(linecache.getline(name, number or 0)))
        if first and name == _DDP:  # it broadcasts buffers by C++ alone
            return True
        first = False
    return False


# -- was anything replaced? ------------------------------------------------------
_GUARDED = {
    "builtins": builtins,
    "os": os,
    "time": time,
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.autograd": torch.autograd,
    "torch.distributed": dist,
    "torch.testing": torch.testing,
    "grader.expect": expect,
    "grader.verdicts.suspicion": suspicion,
}
_ALLOWED = {"__warningregistry__", "_", "__builtins__"}


def _fingerprint() -> dict[str, Any]:
    """Every public function that a check relies on, by its name."""
    marks: dict[str, Any] = {
        f"{place}.{name}": value
        for place, module in _GUARDED.items()
        for name, value in vars(module).items()
        if callable(value) and name not in _ALLOWED
    }
    for place in _GUARDED:
        if place in sys.modules:
            marks[f"sys.modules[{place!r}]"] = sys.modules[place]
    return marks


def _changed(before: dict[str, Any]) -> list[str]:
    """The names that stand for another thing than before.

    What torch itself puts in their place, as ``torch._dynamo`` does when it is
    imported, is no tampering.
    """
    if not before:
        return []
    after = _fingerprint()
    return sorted(
        name
        for name, value in before.items()
        if after.get(name) is not value and not _made_by_torch(after.get(name))
    )[:5]


def _made_by_torch(value: Any) -> bool:
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename.startswith(ledger.TORCH)
