"""Code that fights its grader gets its own verdict and leaves nothing behind.

Each submission runs in three ranks between two right answers, which must stay
right; afterwards no process started by the server may be alive but the server.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from tests.grader.support import RIGHT, grade_code
from tests.launched import wait_until
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import MAX_LINES, Kind

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("trees_are_unchanged")]

HEAD = """
import os, signal, subprocess, sys, threading, time
import torch
import torch.distributed as dist
"""


def submission(body: str, top: str = "") -> str:
    """A file whose answer runs ``body`` and then does the right thing."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return (
        f"{HEAD}{top}\ndef answer(t):\n    rank = dist.get_rank()\n{lines}"
        "    dist.all_reduce(t)\n    return t\n"
    )


# name -> (file, verdict, words of the message)
HOSTILE = {
    "endless loop around a call": (
        submission("def wait():\n    time.sleep(0.1)\nwhile rank == 1:\n    wait()"),
        Kind.LIMIT,
        ["line 9: time.sleep(0.1)", "called at line 11: wait()"],
    ),
    "endless loop": (
        submission("while rank == 1:\n    pass"),
        Kind.LIMIT,
        ["rank 1 had not ended", "line 8", "rank 0: waits in all_reduce"],
    ),
    "deadlock": (
        submission("if rank == 0:\n    dist.barrier()"),
        Kind.HANG,
        ["rank 0: waits in barrier", "rank 2: waits in all_reduce", "different order"],
    ),
    "sys.exit(0)": (
        submission("if rank == 2:\n    sys.exit(0)"),
        Kind.LEFT_EARLY,
        ["rank 2 left", "sys.exit(0)", "line 9"],
    ),
    "os._exit(0)": (
        submission("if rank == 2:\n    os._exit(0)"),
        Kind.LEFT_EARLY,
        ["rank 2 left", "os._exit(0)", "line 9"],
    ),
    "os._exit(0) by all": (
        submission("os._exit(0)"),
        Kind.LEFT_EARLY,
        ["ranks 0, 1 and 2 left", "counts as failed"],
    ),
    "segmentation fault": (
        submission("import ctypes\nif rank == 1:\n    ctypes.string_at(0)"),
        Kind.CRASH,
        ["rank 1", "SIGSEGV", "line 10"],
    ),
    "kills itself": (
        submission("if rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)"),
        Kind.CRASH,
        ["rank 1", "SIGKILL", "line 9"],
    ),
    "10 GB tensor": (
        submission("if rank == 0:\n    x = torch.ones(10 * 1024**3 // 4)"),
        Kind.LIMIT,
        ["rank 0", "memory", "2 GB", "line 9"],
    ),
    "10 GB list": (
        submission("if rank == 0:\n    x = [0] * (10 * 1024**3 // 8)"),
        Kind.LIMIT,
        ["rank 0", "memory", "2 GB", "line 9"],
    ),
    "grows forever": (
        submission("x = []\nwhile rank == 0:\n    x.append(bytes(10**7))"),
        Kind.LIMIT,
        ["rank 0", "memory", "2 GB"],
    ),
    "prints 100 MB": (
        submission("for _ in range(100 * (rank == 1)):\n    print('x' * 10**6)"),
        Kind.LIMIT,
        ["rank 1 printed more than 10 MB"],
    ),
    "writes a huge file": (
        submission(
            "if rank == 0:\n    with open('big', 'wb') as f:\n"
            "        [f.write(bytes(10**7)) for _ in range(40)]"
        ),
        Kind.LIMIT,
        ["rank 0 wrote a file of more than 256 MB"],
    ),
    "reads the keyboard": (
        submission("input('how many? ')"),
        Kind.EXCEPTION,
        ["EOFError", "line 8", "keyboard"],
    ),
    "grandchild that sleeps": (
        submission("if rank == 0 and os.fork() == 0:\n    time.sleep(1000)"),
        Kind.LEFT_RUNNING,
        ["process started by your code was still running", "os.fork"],
    ),
    "grandchild in a session of its own": (
        submission(
            "if rank == 0:\n    subprocess.Popen(['sleep', '1000'], "
            "start_new_session=True)"
        ),
        Kind.LEFT_RUNNING,
        ["sleep 1000"],
    ),
    "orphaned grandchild": (
        submission(
            "if rank == 0 and os.fork() == 0:\n    os.setsid()\n"
            "    if os.fork() == 0:\n        time.sleep(1000)\n    os._exit(0)"
        ),
        Kind.LEFT_RUNNING,
        ["process started by your code was still running", "os.fork"],
    ),
    "thread that never ends": (
        submission("threading.Thread(target=time.sleep, args=(1000,)).start()"),
        Kind.LEFT_RUNNING,
        ["thread", "join"],
    ),
    "removes its folder": (
        submission("if rank == 1:\n    import shutil\n    shutil.rmtree(os.getcwd())"),
        Kind.NOT_A_SOLUTION,
        ["removed the folder that all ranks work in"],
    ),
    "signal.alarm": (
        submission("signal.setitimer(signal.ITIMER_REAL, 0.2)\ntime.sleep(3)"),
        Kind.CRASH,
        ["ranks 0, 1 and 2 were killed by SIGALRM", "alarm"],
    ),
    "2 MB exception message": (
        submission("raise ValueError('x' * 2 * 10**6)"),
        Kind.EXCEPTION,
        ["ValueError", "2,000,000 characters"],
    ),
    "exception that cannot be shown": (
        submission(
            "raise E()",
            top="class E(Exception):\n    def __str__(self): return 1 / 0",
        ),
        Kind.EXCEPTION,
        ["raised E", "cannot be shown"],
    ),
    "output that is not UTF-8": (
        submission("os.write(1, b'\\xff\\xfe\\x80' * 100)\nraise KeyError(3)"),
        Kind.EXCEPTION,
        ["KeyError"],
    ),
    "import that takes 30 s": (
        submission("pass", top="time.sleep(30)"),
        Kind.NOT_LOADED,
        ["importing your file had not ended", "line 5: time.sleep(30)"],
    ),
    "exits on import": (
        submission("pass", top="sys.exit(0)"),
        Kind.NOT_LOADED,
        ["sys.exit(0) on import", "line 5"],
    ),
    "ends on import": (
        submission("pass", top="os._exit(0)"),
        Kind.LEFT_EARLY,
        ["os._exit(0)", "line 5"],
    ),
    "swallows everything": (
        submission(
            "while rank == 1:\n    try:\n        time.sleep(1)\n"
            "    except BaseException:\n        pass"
        ),
        Kind.LIMIT,
        ["rank 1 had not ended"],
    ),
}


@pytest.fixture(scope="module")
def marked_engine():
    """An engine whose processes can be told from all others by their environment."""
    token = uuid.uuid4().hex
    os.environ["WORKSHOP_TEST_TOKEN"] = token
    try:
        with Engine() as engine:
            engine.warm()
            yield engine, token
    finally:
        del os.environ["WORKSHOP_TEST_TOKEN"]


def processes_with(token: str) -> list[int]:
    """The processes, this one apart, that were started with ``token``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rsplit(") ", 1)[1][0]
            except OSError:
                continue
            if token.encode() in environment and state != "Z":
                found.append(int(entry.name))
    return found


def assert_only_the_server_is_left(token: str) -> None:
    wait_until(lambda: len(processes_with(token)) == 1, 5)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_submission_gets_its_verdict_and_leaves_nothing(
    name, marked_engine, tmp_path
):
    engine, token = marked_engine
    code, kind, words = HOSTILE[name]
    verdict = grade_code(engine, tmp_path, code)
    assert verdict.kind is kind, verdict.message
    for word in words:
        assert word in verdict.message, verdict.message
    assert len(verdict.lines) <= MAX_LINES
    assert_only_the_server_is_left(token)
    assert grade_code(engine, tmp_path, RIGHT).kind is Kind.RIGHT


def test_who_closes_every_file_crashes_or_reports_nothing(marked_engine, tmp_path):
    """Whichever is first: gloo's thread, which aborts, or the rank's own report."""
    engine, token = marked_engine
    code = submission("os.closerange(3, 256)")
    verdict = grade_code(engine, tmp_path, code)
    words = {Kind.CRASH: "SIGABRT", Kind.LEFT_EARLY: "reports nothing"}
    assert words[verdict.kind] in verdict.message
    assert_only_the_server_is_left(token)
    assert grade_code(engine, tmp_path, RIGHT).kind is Kind.RIGHT


SLOW_LIBRARY = """
def answer(t):
    name = f"library_of_{dist.get_rank()}"
    with open(f"{name}.py", "w") as file:
        file.write("import time; time.sleep(7)")
    sys.path.insert(0, os.getcwd())
    __import__(name)
    dist.all_reduce(t)
    return t
"""


def test_library_that_is_slow_to_import_is_no_endless_loop(engine, tmp_path):
    """From a cold disk scipy has taken longer than the five seconds of a check."""
    verdict = grade_code(engine, tmp_path, HEAD + SLOW_LIBRARY)
    assert verdict.kind is Kind.RIGHT, verdict.message
