"""A fork of the server becomes the program that a client was started for.

Afterwards nothing of the server is left that a program would notice: its files,
environment, signals, `sys.argv`, `__main__` and standard streams are those of a cold
start, no frame of the server is below its own.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import faulthandler
import fcntl
import functools
import gc
import importlib
import importlib.machinery
import io
import multiprocessing
import multiprocessing.spawn
import os
import random
import resource
import runpy
import signal
import sys
import tempfile
import threading
import time
import types
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

from terms import PLAIN_LOCALES, Command, effective_locale

try:
    import greenlet
except ModuleNotFoundError:  # an environment of tools/torches.py has the least
    greenlet = None


class Preloaded(NamedTuple):
    """The modules that the server has, seen once: before it forks.

    A fork that goes through them touches the name of each, which copies a page of
    memory. There are nearly 3,000 of them.
    """

    names: set[str]
    last: str  # what a program loads comes after it

    @classmethod
    def until_now(cls) -> Preloaded:
        return cls(set(sys.modules) - {"__main__"}, next(reversed(sys.modules)))

    def later_ones(self) -> list[str]:
        """The modules of a program, in the order in which it has loaded them."""
        later = []
        for name in reversed(sys.modules):
            if name == self.last:
                break
            if name not in self.names and name != "__main__":
                later.append(name)
        return ["__main__", *reversed(later)]


class Program:
    """One start: `command` as terms.parse() read it, `wanted` as the client said."""

    def __init__(self, command: Command, wanted: dict, preloaded: Preloaded) -> None:
        self.command = command
        self.wanted = wanted
        self.environment: dict[str, str] = wanted["environment"]
        self.preloaded = preloaded

    # Before it runs

    def prepare(self, files: list[int], preparing: int) -> None:
        """Take over what the client has; then say so into the pipe `preparing`.

        Raises:
            OSError: that cannot be done; the start must be a cold one.
        """
        wanted = self.wanted
        if wanted["leads_session"]:
            os.setsid()
        elif wanted["leads_group"]:
            os.setpgid(0, 0)
        os.chdir(wanted["folder"])
        if self.command.kind == "file" and not os.path.isfile(self.command.rest[0]):
            raise FileNotFoundError(self.command.rest[0])  # Python says it its own way
        os.umask(wanted["umask"])
        if set(wanted["groups"]) != set(os.getgroups()):
            os.setgroups(wanted["groups"])
        if wanted["nice"] != os.getpriority(os.PRIO_PROCESS, 0):
            os.setpriority(os.PRIO_PROCESS, 0, wanted["nice"])
        os.sched_setaffinity(0, wanted["cores"])
        preparing = self._take_files(files, preparing)
        for number, *limits in wanted["limits"]:
            if resource.getrlimit(number) != tuple(limits):
                resource.setrlimit(number, tuple(limits))
        os.environ.clear()
        os.environ.update(self.environment)
        self._set_interpreter()
        self._set_libraries()
        self._set_signals()
        os.write(preparing, b"W")
        os.close(preparing)

    def _take_files(self, files: list[int], preparing: int) -> int:
        """The client's open files get its numbers; all others are closed."""
        numbers = self.wanted["files"]
        top = max([*numbers, *files, preparing, 2]) + 1
        moved = [fcntl.fcntl(f, fcntl.F_DUPFD_CLOEXEC, top) for f in files]
        preparing = fcntl.fcntl(preparing, fcntl.F_DUPFD_CLOEXEC, top)
        os.closerange(0, top)
        for source, number in zip(moved, numbers, strict=True):
            os.dup2(source, number, inheritable=True)
            os.close(source)
        return preparing

    def _set_signals(self) -> None:
        ignored = set(self.wanted["ignored"])
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, *ignored):
            action = signal.SIG_IGN if number in ignored else signal.SIG_DFL
            signal.signal(number, action)
        if signal.SIGINT not in ignored:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.wanted["mask"])

    def _set_interpreter(self) -> None:
        """What an interpreter sets from its command line and the environment."""
        command, name = self.command, self.wanted["name"]
        sys.executable = name
        sys.orig_argv = [name, *self.wanted["arguments"]]
        multiprocessing.set_executable(name)
        # The server's own folder comes first in its path, and it has no PYTHONPATH.
        found = dict.fromkeys([*self._python_path(), *sys.path[1:]])
        sys.path[:] = [*self._first_path(), *found]
        for module in ("program", "terms"):
            del sys.modules[module]
        sys.argv = command.rest[1:] if command.kind == "-m" else list(command.rest)
        if command.kind == "-c":
            sys.argv = ["-c", *command.rest[2:]]
        no_bytecode = is_set(self.environment.get("PYTHONDONTWRITEBYTECODE"))
        sys.dont_write_bytecode = no_bytecode or not command.bytecode
        sys.warnoptions[:] = command.warnings
        for action in command.warnings:
            warnings.simplefilter(action)
        self._open_streams()
        if command.faulthandler or self.environment.get("PYTHONFAULTHANDLER"):
            faulthandler.enable()

    def _first_path(self) -> list[str]:
        kind, first = self.command.kind, self.command.rest[0]
        if kind == "file":
            return [os.path.dirname(os.path.realpath(first))]
        return [os.getcwd() if kind == "-m" else ""]

    def _python_path(self) -> list[str]:
        """As `site` leaves it: without relative folders."""
        text = self.environment.get("PYTHONPATH", "")
        return [os.path.abspath(one) for one in text.split(os.pathsep)] if text else []

    def _open_streams(self) -> None:
        """Standard streams, as Python's own start makes them."""
        wanted = self.environment.get("PYTHONUNBUFFERED")
        unbuffered = self.command.unbuffered or is_set(wanted)
        plain = effective_locale(self.environment) in PLAIN_LOCALES
        errors = "surrogateescape" if plain else "strict"
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            stream = open_stream(number, name, unbuffered, errors)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)

    def _set_libraries(self) -> None:
        """Random numbers of its own, and what torch reads from the environment."""
        import numpy
        import torch

        tempfile.tempdir = None  # found in the server's environment
        time.tzset()
        random.seed()
        numpy.random.seed()
        torch.default_generator.seed()
        threads = self.environment.get("OMP_NUM_THREADS", "")
        if threads.isdigit() and int(threads):
            torch.set_num_threads(int(threads))
        elif len(self.wanted["cores"]) != torch.get_num_threads():
            torch.set_num_threads(len(self.wanted["cores"]))
        if "TORCH_DISTRIBUTED_DEBUG" in self.environment:
            torch.distributed.set_debug_level_from_env()
        if self.environment.get("TORCH_CPP_LOG_LEVEL"):
            read_log_level(torch)

    # Running

    def run(self) -> NoReturn:
        """Run the program, and end as Python does with its own."""
        gc.enable()
        status = 0
        try:
            self._customize()
            call = self._call(new_main())
            if greenlet:
                # its first frame has none below it, as that of a cold program
                call = greenlet.greenlet(call).switch
            call()
        except SystemExit as request:
            status = exit_status(request.code)
        except BaseException as error:
            status = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
            report(error)
        end(status, self.preloaded)

    def _customize(self) -> None:
        """Import the ``sitecustomize`` of PYTHONPATH, as Python does when it starts."""
        folders = filter(os.path.isabs, self._python_path())
        if any(os.path.isfile(f"{folder}/sitecustomize.py") for folder in folders):
            sys.modules.pop("sitecustomize", None)
            importlib.invalidate_caches()
            importlib.import_module("sitecustomize")

    def _call(self, module: types.ModuleType) -> Callable[[], object]:
        """What runs the program, without a frame of Python's own."""
        kind, rest, scope = self.command.kind, self.command.rest, module.__dict__
        if kind == "-m":
            sys.modules.pop(rest[1], None)  # the server may have imported it
            return functools.partial(runpy._run_module_as_main, rest[1])
        if kind == "-c":
            scope["__loader__"] = importlib.machinery.BuiltinImporter
            code = compile(rest[1], "<string>", "exec", dont_inherit=True)
        else:
            path = absolute(rest[0])
            scope["__file__"] = path
            scope["__cached__"] = None
            loader = importlib.machinery.SourceFileLoader("__main__", path)
            scope["__loader__"] = loader
            code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        return functools.partial(exec, code, scope)


OWN_CODE = {Program.run.__code__, Program._call.__code__}


def new_main() -> types.ModuleType:
    """An empty module for the program, in place of the server's."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __annotations__={})
    return module


def absolute(path: str) -> str:
    """A script's path as Python shows it: absolute, and not otherwise altered."""
    if path.startswith("/"):
        return path
    return os.path.join(os.getcwd(), path.removeprefix("./"))


def report(error: BaseException) -> None:
    """Print an exception that nobody has caught, and keep it, as Python does."""
    while (trace := error.__traceback__) and trace.tb_frame.f_code in OWN_CODE:
        error.__traceback__ = trace.tb_next
    found = type(error), error, error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = found
    sys.excepthook(*found)


def exit_status(code: object) -> int:
    """What ``sys.exit(code)`` ends with; a sentence is printed."""
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)
    return 1


def end(status: int, preloaded: Preloaded) -> NoReturn:
    """What Py_FinalizeEx() does for a program: threads, atexit, its objects, streams.

    To take the libraries apart, too, costs half a second. What a library does only
    then is the subject of cold tests.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    flushed = flush_streams()
    sys.last_type = sys.last_value = sys.last_traceback = None
    delete_modules(preloaded)
    flushed = flush_streams() and flushed
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if flushed else 120)


def read_log_level(torch: types.ModuleType) -> None:
    """What torch does when it is imported: c10::initLogging()."""
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    ctypes.CDLL(str(library))._ZN3c1011initLoggingEv()


def delete_modules(preloaded: Preloaded) -> None:
    """Delete the program's modules and with them its objects, in Python's order."""
    left = []
    for name in preloaded.later_ones():
        with contextlib.suppress(TypeError):  # no module, what a program put there
            left.append(weakref.ref(sys.modules.pop(name, None)))
    gc.collect()
    for module in filter(None, (reference() for reference in left)):
        for name in [name for name in vars(module) if name != "__builtins__"]:
            vars(module)[name] = None
    gc.collect()


def flush_streams() -> bool:
    """Whether all that was printed has arrived; if not, Python says so."""
    arrived = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception as error:
            arrived = False
            said = f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}"
            with contextlib.suppress(Exception):
                print(said, file=sys.stderr, flush=True)
    return arrived


def is_set(flag: str | None) -> bool:
    """Whether a variable such as PYTHONUNBUFFERED is on: by any text but 0."""
    return bool(flag) and not (flag.isdigit() and int(flag) == 0)


def open_stream(number: int, name: str, unbuffered: bool, errors: str):
    """``sys.stdin`` and the others, as Python's own start makes them; None: closed."""
    try:
        os.fstat(number)
    except OSError:
        return None
    writes = number > 0
    unbuffered = unbuffered and writes
    mode = "w" if writes else "r"
    buffering = 0 if unbuffered else -1
    buffer = open(number, f"{mode}b", buffering, closefd=False)  # noqa: SIM115
    raw = buffer if unbuffered else buffer.raw
    raw.name = f"<{name}>"
    stream = io.TextIOWrapper(
        buffer,
        encoding=sys.__stderr__.encoding,
        errors="backslashreplace" if name == "stderr" else errors,
        newline="\n",
        line_buffering=not unbuffered and (raw.isatty() or name == "stderr"),
        write_through=unbuffered,
    )
    stream.mode = mode
    return stream
