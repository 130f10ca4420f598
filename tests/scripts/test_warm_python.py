"""A warm Python does what a cold one does: the same output, exit status and files.

Each program runs twice side by side, as it would in a test: once by the wrappers of
`tests/warm`, once with COLD_PYTHON. Signals to whole groups, and what is left of a
session, are in test_warm_ends.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.needs import needs
from tests.scripts.cold_and_warm import both, wrappers
from tests.warm import terms

ROOT = Path(__file__).resolve().parents[2]
SPAWN = """
import os, sys, time
import torch.multiprocessing as mp
def rank(number, text):
    if number == 1: sys.exit(3 if text == "fails" else 0)
    if text == "fails": time.sleep(60)
    print(text, number, flush=True)
if __name__ == "__main__":
    print(os.path.basename(sys.argv[0]), __file__ == os.path.abspath("p.py"))
    mp.spawn(rank, (sys.argv[1],), nprocs=2)
"""
RESTARTS = """
import os, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
count = os.environ["TORCHELASTIC_RESTART_COUNT"]
total = torch.ones(1)
dist.all_reduce(total)
open(f"{count}-{dist.get_rank()}-of-{int(total)}", "w").close()
dist.destroy_process_group()
if count == "0" and os.environ["RANK"] == "1": sys.exit(7)
if count == "0": time.sleep(60)  # torchrun ends this rank, and says so
"""
SELF = """
import __main__, os, sys, threading
print(sys.argv, sys.path[0] == os.path.dirname(os.path.realpath("p.py")), __name__)
print(__file__, __doc__, __package__, __spec__, type(__loader__).__name__)
print(sorted(n for n in vars(__main__) if n.startswith("__")))
print(sys.stdin, sys.stdout, sys.stderr, sys.stdout.line_buffering)
print(sys.orig_argv[1:], threading.current_thread() is threading.main_thread())
print(sorted({"program", "server", "terms", "tests", "workshop"} & set(sys.modules)))
print(sys._getframe().f_back, len(sys.path), sys.warnoptions, sys.dont_write_bytecode)
def annotated(size: int): pass
print(annotated.__annotations__)
"""
INHERITED = """
import json, os, resource, signal, sys, torch
own = ("_", "COLD_PYTHON")
seen = {
    "folder": os.getcwd(),
    "umask": os.umask(0),
    "limits": {n: resource.getrlimit(v) for n, v in vars(resource).items()
               if n.startswith("RLIMIT_")},
    "cores": sorted(os.sched_getaffinity(0)),
    "nice": os.getpriority(os.PRIO_PROCESS, 0),
    "open": sorted(int(n) for n in os.listdir("/proc/self/fd") if int(n) != 3),
    "signals": [str(signal.getsignal(s)).split(" at ")[0] for s in range(1, 32)],
    "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "leads": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
    "environment": {k: v for k, v in os.environ.items() if k not in own},
    "threads": torch.get_num_threads(),
    "start method": torch.multiprocessing.get_start_method(allow_none=True),
}
print(json.dumps(seen, indent=1))
os.write(5, b"into a file that was open")
print(sys.stdin.read())
"""
OPEN = """
import os
numbers = sorted(map(int, os.listdir("/proc/self/fd")))
print(len(numbers), numbers[-1])
os.write(numbers[-1], b"into the last one")
"""
FAULT = """
import faulthandler
def deep(): faulthandler.dump_traceback(all_threads=False)
deep()
"""
CRASH = """
import faulthandler, os, signal, resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
def deep(): os.kill(os.getpid(), signal.SIGSEGV)
deep()
"""
AT_EXIT = """
import atexit, sys, threading, time, weakref
class Thing:
    def __del__(self): print("deleted", sys is not None)
thing = Thing()
atexit.register(print, "at exit")
threading.Thread(target=lambda: (time.sleep(0.3), print("thread"))).start()
print("no line end", end="")
"""
CAUSE = """
def f():
    try: 1 / 0
    except ZeroDivisionError as error: raise ValueError("x") from error
f()
"""
HANDLER = """
import os, signal, time, sys
signal.signal(signal.SIGUSR1, lambda *_: (print("usr1", flush=True), sys.exit(5)))
os.write(1, b"ready\\n"), time.sleep(600)
"""
SLEEPS = "import os, time\nos.write(1, b'ready\\n'), time.sleep(600)\n"
SETTLED = "import os, sys, torch; print(hash('a') if sys.flags.hash_randomization == 0 "
SETTLED += "else os.environ['CUDA_VISIBLE_DEVICES'], torch.get_num_threads(), "
SETTLED += "torch.distributed.get_debug_level(), sys.stdout.write_through)"
LEADS = "import os; print(os.getpid() in (os.getpgrp(), os.getsid(0)))"
LONG = "for i in range(100000): print(i)"
MODULE = (
    "import sys\nprint(sys.argv, __name__, __package__, sys.path[0])\nraise KeyError(1)"
)
COLLECTIVE = """
import torch, torch.distributed as dist
import torch.distributed.nn.functional  # after init a rank might abort at its end
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
torch.manual_seed(3)
model = DDP(torch.nn.Linear(4, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(5, 4) * (dist.get_rank() + step)).square().sum().backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "weights")
    print(model.module.weight)
del model
dist.destroy_process_group()
"""

# name: (program, its arguments, Python's options, signal to send once it is "ready")
PROGRAMS = {
    "success": ("print('one'); import sys; print('two', file=sys.stderr)", [], [], 0),
    "exception with a cause": (CAUSE, [], [], 0),
    "syntax error": ("x = = 1", [], [], 0),
    "sys.exit with a number": ("import sys; sys.exit(3)", [], [], 0),
    "sys.exit with a sentence": ("import sys; sys.exit('no such file')", [], [], 0),
    "os._exit": ("import os; os._exit(9)", [], [], 0),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", [], [], 0),
    "spawn": (SPAWN, ["works"], [], 0),
    "spawn whose rank fails": (SPAWN, ["fails"], [], 0),
    "no line end, a thread, atexit": (AT_EXIT, [], [], 0),
    "what a program sees of itself": (SELF, ["a", "b c"], [], 0),
    "options": (SELF, ["x"], ["-u", "-B", "-W", "ignore"], 0),
    "faulthandler": (FAULT, [], [], 0),
    "crash": (CRASH, [], ["-X", "faulthandler"], 0),
    "Ctrl-C": (SLEEPS, [], [], signal.SIGINT),
    "SIGTERM": (SLEEPS, [], [], signal.SIGTERM),
    "SIGHUP": (SLEEPS, [], [], signal.SIGHUP),
    "SIGUSR2": (SLEEPS, [], [], signal.SIGUSR2),
    "SIGUSR1 with a handler": (HANDLER, [], [], signal.SIGUSR1),
    "SIGKILL": (SLEEPS, [], [], signal.SIGKILL),
    "an option that only a new interpreter obeys": (SELF, [], ["-O"], 0),
}
COMMANDS = {
    "-c": ["python", "-c", "import sys; print(sys.argv, sys.path[0]); 1 / 0", "-c"],
    "-m": ["python", "-m", "package.module", "-m", "x"],
    "-m of nothing": ["python", "-m", "no_such_module"],
    "no such file": ["python", "no_such_file.py"],
    "variables that imports read": [
        *("env", "PYTHONHASHSEED=0", "python", "-c", SETTLED),
    ],
    "variables that are applied": [
        *("env", "OMP_NUM_THREADS=2", "PYTHONUNBUFFERED=1", "CUDA_VISIBLE_DEVICES=1"),
        *("TORCH_DISTRIBUTED_DEBUG=DETAIL", "python", "-c", SETTLED),
    ],
    "torchrun": ["torchrun", "--standalone", "--nproc-per-node=2", "ddp.py"],
    "torchrun that restarts": [
        *("env", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"),
        *("python", "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node=2", "--max-restarts=1", "restarts.py"),
    ],
    "reader that closes early": [
        *("bash", "-o", "pipefail", "-c", "python long.py | head -1"),
    ],
    "in the background": [
        *("bash", "-c", f"python -c '{LEADS}' & wait $!; exec python ddp.py"),
    ],
    "as many open files as one message carries, and one more": [
        *("bash", "-c"),
        'for n in {10..258}; do eval "exec $n>>written"; done; python open.py; '
        "exec 259>>written; python open.py",
    ],
    "folders of PYTHONPATH": [
        *("env", "PYTHONPATH=x:/y::x:/y/", "python", "-c"),
        "import sys; print(sys.path, sys.modules.keys() & {'package'})",
    ],
    "what a shell sets": [
        *("bash", "-c"),
        "trap '' INT USR2; umask 027; ulimit -n 77 -c 0 -t 500 -f 9999; "
        "export PYTHONPATH=x:y LC_ALL=C; "
        "exec taskset 1 nice -n 3 python p.py 5> written < long.py",
    ],
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_does_the_same_cold_and_warm(name, tmp_path):
    text, arguments, options, send = PROGRAMS[name]

    def fill(folder: Path) -> None:
        (folder / "p.py").write_text(text)

    command = ["python", *options, "p.py", *arguments]
    strike = (lambda process: process.send_signal(send)) if send else None
    cold, warm = both(command, tmp_path, fill, strike)
    assert warm == cold


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_command_does_the_same_cold_and_warm(name, tmp_path):
    def fill(folder: Path) -> None:
        (folder / "package").mkdir()
        (folder / "p.py").write_text(INHERITED)
        (folder / "package" / "module.py").write_text(MODULE)
        (folder / "ddp.py").write_text(COLLECTIVE)
        (folder / "restarts.py").write_text(RESTARTS)
        (folder / "long.py").write_text(LONG)
        (folder / "open.py").write_text(OPEN)

    cold, warm = both(COMMANDS[name], tmp_path, fill)
    assert warm == cold


DRAWS = "import random, numpy, torch; print(random.random(), numpy.random.rand(), "
DRAWS += "torch.rand(1).item(), torch.initial_seed(), sep='\\n')"


def test_every_start_draws_other_numbers():
    command = [wrappers() / "python", "-c", DRAWS]
    one, two = (subprocess.check_output(command, text=True).split() for _ in range(2))
    assert len(one) == 4 and not set(one) & set(two)


def test_only_the_warm_python_begins_with_torch(monkeypatch):
    command = [wrappers() / "python", "-c", "import sys; print('torch' in sys.modules)"]
    seen = []
    for cold in ("", "1"):
        monkeypatch.setenv("COLD_PYTHON", cold)
        seen.append(subprocess.run(command, capture_output=True, text=True).stdout)
    assert seen == ["True\n", "False\n"]


@needs("pgrep")
def test_command_line_is_found_once(tmp_path):
    """Else `kill $(pgrep -f NAME | head -1)` would end a process that does nothing."""
    code = "import subprocess, sys; subprocess.run(['pgrep', '-cf', sys.argv[1]])"
    command = [wrappers() / "python", "-c", code, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "1\n"


LOG_LEVEL = """
import ctypes, pathlib, torch
c10 = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / "libc10.so"))
print(ctypes.c_int.in_dll(c10, "FLAGS_caffe2_log_level").value)
"""


@pytest.mark.parametrize(("level", "number"), [("INFO", 0), ("ERROR", 2)])
def test_warm_program_logs_what_its_environment_says(level, number, monkeypatch):
    monkeypatch.setenv("TORCH_CPP_LOG_LEVEL", level)
    assert terms.differing({"TORCH_CPP_LOG_LEVEL": "ERROR"}, {}) == []
    assert terms.differing({}, {"TORCH_CPP_LOG_LEVEL": "ERROR"})
    command = [wrappers() / "python", "-c", LOG_LEVEL]
    for cold in ("", "1"):
        monkeypatch.setenv("COLD_PYTHON", cold)
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stdout == f"{number}\n", done.stderr


def test_library_path_is_warm_unless_it_has_another_copy_of_a_library(
    tmp_path, monkeypatch
):
    """Open MPI's ranks have one; what is loaded already came from elsewhere."""

    def differing(folders: str | None, own: dict) -> list[str]:
        monkeypatch.setattr(os, "environ", own)
        given = {"LD_LIBRARY_PATH": folders} if folders else {}
        return terms.differing(given, own)

    (tmp_path / "libmpi.so.40").touch()
    (ours,) = terms.loaded_libraries()["libc.so"]
    (tmp_path / "libc.so.6").symlink_to(ours)
    assert differing(f"/no/such/folder:{tmp_path}", {}) == []
    assert differing(f"{tmp_path}:", {}) == ["LD_LIBRARY_PATH"]
    assert differing(None, {"LD_LIBRARY_PATH": str(tmp_path)})
    assert differing(str(tmp_path), {"LD_LIBRARY_PATH": "/opt"})
    (tmp_path / "libm.so.6").touch()
    assert differing(str(tmp_path), {}) == ["LD_LIBRARY_PATH"]


OTHER_IMPORTS = {
    "PYTHONHASHSEED": "0",
    "PYTHONOPTIMIZE": "1",
    "PYTHONWARNINGS": "error",
    "TORCH_LOGS": "+dynamo",
    "TORCH_SHOW_CPP_STACKTRACES": "1",
    "OMP_PROC_BIND": "true",
    "MKL_NUM_THREADS": "3",
    "CUDA_LAUNCH_BLOCKING": "1",
    "LD_PRELOAD": "/lib/libm.so.6",
}


@pytest.mark.parametrize("name", OTHER_IMPORTS)
def test_variable_that_imports_read_makes_a_cold_start(name, monkeypatch):
    """Added, changed or taken away; what is equal on both sides is warm."""
    plain = {"CUDA_VISIBLE_DEVICES": "1", "OMP_NUM_THREADS": "4", "TORCH_NCCL_X": "1"}
    with_it = plain | {name: OTHER_IMPORTS[name]}

    def differing(environment: dict, own: dict) -> list[str]:
        monkeypatch.setattr(os, "environ", own)
        return terms.differing(environment, own)

    assert differing(with_it, {}) == [name]
    assert differing({}, with_it) == [name]
    assert differing(with_it, plain | {name: "2"}) == [name]
    assert not differing(with_it, with_it) and not differing(plain, {})
