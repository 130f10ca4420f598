"""How warm programs end: by signals to a whole group, and with their test session."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.launched import wait_until
from tests.scripts.cold_and_warm import both
from workshop.system import processes

ROOT = Path(__file__).resolve().parents[2]

# Signals to a whole process group

SLEEPS = """
import os, time
try:
    os.write(1, b"ready\\n"), time.sleep(600)
except KeyboardInterrupt:
    open(f"interrupted-{os.environ.get('RANK')}", "w").close()
    raise SystemExit(4)
"""
RANKS = """
import os, signal, sys, time
import torch.multiprocessing as mp
def say_and_end(number, frame):
    open(f"{name} got {number}", "w").close()
    sys.exit(3)
def rank(index):
    global name
    name = f"rank {index}"
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, say_and_end)
    os.write(1, b"ready\\n"), time.sleep(600)
if __name__ == "__main__":
    if sys.argv[1:]:  # outlive SIGTERM, else the ranks get SIGINT, too, at any time
        signal.signal(signal.SIGTERM, lambda *_: None)
    mp.spawn(rank, nprocs=2)
"""
TORCHRUN = ["torchrun", "--standalone", "--nproc-per-node=2", "p.py"]
# A child in the shell's group; the trap lets the shell say how it ended.
CHILD = ["bash", "-c", "trap : TERM; python p.py; echo ended with $?"]
SPAWN = ["python", "ranks.py"]
OUTLIVES = [*SPAWN, "outlive"]
CHILD_SPAWNS = [*CHILD[:2], CHILD[2].replace("p.py", "ranks.py outlive")]
GROUPS = {
    "torchrun, SIGTERM": (TORCHRUN, signal.SIGTERM, 2),
    "torchrun, Ctrl-C": (TORCHRUN, signal.SIGINT, 2),
    "child in another's group, SIGTERM": (CHILD, signal.SIGTERM, 1),
    "child in another's group, Ctrl-C": (CHILD, signal.SIGINT, 1),
    "child in another's group, SIGKILL": (CHILD, signal.SIGKILL, 1),
    "mp.spawn, SIGTERM": (OUTLIVES, signal.SIGTERM, 2),
    "mp.spawn, SIGKILL": (SPAWN, signal.SIGKILL, 2),
    "mp.spawn in another's group, SIGTERM": (CHILD_SPAWNS, signal.SIGTERM, 2),
    "mp.spawn in another's group, SIGKILL": (CHILD_SPAWNS, signal.SIGKILL, 2),
}


# mp.spawn says it of ranks that are still ending when it sees the first one end.
TERMINATES = re.compile(r"LOG torch/multiprocessing/spawn\.py:\d+\] Terminating pid N ")


def without_frames(outcome: dict) -> dict:
    """Where in its loop a launcher was when the signal came is chance.

    So is, after a signal to all, whether one rank had ended before another was seen.
    """
    lines = [line for line in outcome["err"] if not line.startswith("  ")]
    return outcome | {"err": [n for n in lines if not TERMINATES.match(n)]}


@pytest.mark.nightly
@pytest.mark.parametrize("name", GROUPS)
def test_signal_to_a_group_ends_the_same_cold_and_warm(name, tmp_path):
    """Nothing is left: the outcome is there when the last rank has closed its output.

    A warm program cannot join the group of its caller (tests/warm/server.py); its group
    gets the signal because a witness in that of its caller tells of it.
    """
    command, number, ready = GROUPS[name]

    def strike(process: subprocess.Popen) -> None:
        os.killpg(process.pid, number)

    cold, warm = map(without_frames, both(command, tmp_path, fill, strike, ready))
    assert warm == cold


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL])
def test_signal_to_one_program_does_not_reach_its_ranks(number, tmp_path):
    def strike(process: subprocess.Popen) -> None:
        process.send_signal(number)

    cold, warm = map(without_frames, both(SPAWN, tmp_path, fill, strike, 2))
    assert warm == cold
    assert warm["status"] == -number
    assert not [name for name in warm["files"] if "got" in name]


def fill(folder: Path) -> None:
    (folder / "p.py").write_text(SLEEPS)
    (folder / "ranks.py").write_text(RANKS)


# The end of a test session

SESSION = """
import subprocess
from tests.warm import WarmPython
session = WarmPython()
program = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
words = [session.bin / "python", "-c", program]
running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
running.stdout.readline()
session.close()
print(session.folder, flush=True)
input()
"""
TESTS = """
import os, subprocess, sys
from pathlib import Path
import pytest
CODE = "import sys, time; print('torch' in sys.modules, flush=True); time.sleep(600)"
@pytest.mark.parametrize("name", ["one", "two"])
def test_that_waits_for_its_program(name):
    program = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"True\\n"
    said = Path(__file__).with_name("said")
    said.write_text(f"{os.getpid()} {os.environ['WARM_PYTHON_BIN']}")
    said.rename(said.with_name(name))
    program.wait()
"""
ALONE = {"COLD_PYTHON": "", "WARM_PYTHON_BIN": None, "PYTEST_XDIST_WORKER": None}


@pytest.fixture
def own_session(monkeypatch, tmp_path):
    """``own_session(words)``: a process with a warm session of its own.

    Everything that it starts has its variable, a server and its forks, too.
    """
    for name, value in ALONE.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    cold = os.environ["WARM_COLD_PYTHON"]
    monkeypatch.setenv("OF_A_WARM_SESSION", str(tmp_path))
    pipe, started = subprocess.PIPE, []

    def start(*words):
        process = subprocess.Popen(
            [cold, *words], cwd=ROOT, text=True, stdin=pipe, stdout=pipe
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def of_the_session(tmp_path: Path) -> list[int]:
    return list(processes.with_variable(f"OF_A_WARM_SESSION={tmp_path}"))


@pytest.mark.nightly
def test_session_that_is_closed_leaves_nothing(own_session, tmp_path):
    session = own_session("-c", SESSION)
    folder = Path(session.stdout.readline().strip())
    assert folder.name.startswith("warm-") and not folder.exists()
    wait_until(lambda: of_the_session(tmp_path) == [session.pid])


@pytest.mark.nightly
def test_killed_worker_and_killed_pytest_leave_nothing(own_session, tmp_path):
    """SIGKILL to a worker, which pytest replaces, then to pytest."""
    file = tmp_path / "test_that_waits.py"
    file.write_text(TESTS)
    options = ["-n", "1", "-c", ROOT / "pyproject.toml", "-p", "tests.conftest"]
    session = own_session("-m", "pytest", "-p", "no:cacheprovider", *options, file)
    worker, wrappers = wait_until((tmp_path / "one").is_file) and said(tmp_path, "one")
    os.kill(worker, signal.SIGKILL)
    wait_until((tmp_path / "two").is_file)
    assert said(tmp_path, "two")[0] != worker
    folder = wrappers.parents[1]
    assert folder.is_dir() and len(of_the_session(tmp_path)) > 4
    session.kill()
    wait_until(lambda: not folder.exists(), what="the server removes its folder")
    wait_until(lambda: not of_the_session(tmp_path), what="all processes have ended")


def said(folder: Path, name: str) -> tuple[int, Path]:
    """What a test wrote: its worker's number and the folder of the wrappers."""
    number, wrappers = (folder / name).read_text().split()
    return int(number), Path(wrappers)
