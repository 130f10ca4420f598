"""What a learner's code can see, change and reach while it is graded: nothing of ours.

Each submission tries one thing as rank 0 and then answers rightly, so the verdict says
what became of the attempt: what it wanted must fail, or what it found must be empty.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.grader.support import RIGHT, grade_code
from workshop.errors import UserError
from workshop.grader.engine import isolation
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        bool(why := isolation.probe()), reason=f"needs namespaces: {why}"
    ),
    pytest.mark.usefixtures("trees_are_unchanged"),
]
ROOT = Path(__file__).resolve().parents[2]

# name -> (what rank 0 tries, the exception that it gets, words of its message)
REFUSED = {
    "appends to another learner's file": ("open(OTHER, 'a')", "FileNotFoundError"),
    "appends to whatever it finds": (
        "found = glob.glob(FOLDERS + '/**/*.py', recursive=True)\n"
        "raise FileNotFoundError if not found else open(found[0], 'a')",
        "FileNotFoundError",
    ),
    "reads the solutions": (
        "open(ROOT + '/solutions/03_ring_all_reduce.py')",
        "FileNotFoundError",
    ),
    "reads right answers of the tests": (
        "os.listdir(ROOT + '/tests/exercises')",
        "FileNotFoundError",
    ),
    "reads the repository's history": (
        "open(ROOT + '/.git/HEAD')",
        "FileNotFoundError",
    ),
    "reads the solutions through its parent": (
        "open(f'/proc/{os.getppid()}/root{ROOT}/solutions/01_resume.py')",
        "FileNotFoundError",
    ),
    "reads the solutions through PID 1": (
        "open(f'/proc/1/root{ROOT}/solutions/01_resume.py')",
        "FileNotFoundError|PermissionError",
    ),
    "reads through an open folder": (
        "for n in range(3, 64):\n"
        "    try:\n"
        "        os.open('solutions', os.O_RDONLY, dir_fd=n)\n"
        "    except OSError:\n"
        "        continue\n"
        "    raise RuntimeError('found')\n"
        "raise FileNotFoundError",
        "FileNotFoundError",
    ),
    "writes into the workshop": ("open(VICTIM + '.new', 'w')", "OSError"),
    "changes a program of the workshop": (
        "open(VICTIM, 'a')",
        "OSError",
    ),
    "removes a program of the workshop": (
        "os.remove(VICTIM)",
        "OSError",
    ),
    "renames a program of the workshop": (
        "os.rename(VICTIM, VICTIM + '.gone')",
        "OSError",
    ),
    "changes a mode": ("os.chmod(VICTIM, 0o777)", "OSError"),
    "changes times": ("os.utime(VICTIM)", "OSError"),
    "links out of the check's folder": (
        "os.link(VICTIM, 'mine')",
        "OSError",
    ),
    "follows a link of its own": (
        "os.symlink(VICTIM, 'mine')\nopen('mine', 'a')",
        "OSError",
    ),
    "writes into the home": (
        "open(os.path.expanduser('~') + '/mine', 'w')",
        "OSError|FileNotFoundError",
    ),
    "reads the home": (
        "raise FileNotFoundError if not SECRETS() else RuntimeError(SECRETS())",
        "FileNotFoundError",
    ),
    "writes beside Python": ("open(sys.prefix + '/mine', 'w')", "OSError"),
    "writes into /etc": ("open('/etc/mine', 'w')", "OSError"),
    "makes the file system writable": (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.mount(None, b'/', None, 32 | 4096, None):\n"
        "    raise OSError(ctypes.get_errno(), 'mount')",
        "PermissionError",
    ),
    "unmounts what hides the solutions": (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.umount2((ROOT + '/solutions').encode(), 2):\n"
        "    raise OSError(ctypes.get_errno(), 'umount')",
        "PermissionError",
    ),
    "unmounts it in a world of its own": (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.unshare(0x10000000 | 0x00020000)\n"
        "if libc.umount2((ROOT + '/solutions').encode(), 2):\n"
        "    raise OSError(ctypes.get_errno(), 'umount')",
        "PermissionError|OSError",
    ),
    "kills the process that watches it": (
        "os.kill(WATCHING, signal.SIGKILL)",
        "ProcessLookupError",
    ),
    "kills its parent": (
        "raise ProcessLookupError if os.getppid() == 0 else os.kill(os.getppid(), 9)",
        "ProcessLookupError",
    ),
    "connects to a server of this machine": (
        "socket.create_connection(('127.0.0.1', PORT), 2)",
        "ConnectionRefusedError",
    ),
    "connects to the network": (
        "socket.create_connection(('192.0.2.1', 80), 2)",
        "OSError",
    ),
    "connects to a socket without a file": (
        "socket.socket(socket.AF_UNIX).connect('\\0' + NAME)",
        "ConnectionRefusedError",
    ),
    "reads another user's processes": (
        "pids = [n for n in os.listdir('/proc') if n.isdigit()]\n"
        "raise ProcessLookupError if len(pids) < 8 else RuntimeError(pids)",
        "ProcessLookupError",
    ),
    "traces PID 1": (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.ptrace(16, 1, None, None):\n"
        "    raise OSError(ctypes.get_errno(), 'ptrace')",
        "PermissionError|ProcessLookupError",
    ),
    "becomes another user": ("os.setuid(65534)", "PermissionError|OSError"),
    "shares memory with another check": (
        "left = [n for n in os.listdir('/dev/shm') if 'workshop' not in n]\n"
        "raise FileNotFoundError if not left else RuntimeError(left)",
        "FileNotFoundError",
    ),
}
ATTEMPT = """
import ctypes, glob, os, signal, socket, sys
import torch.distributed as dist

{names}

def SECRETS():
    home = os.path.expanduser("~")
    return glob.glob(home + "/**/secret-of-this-test", recursive=True)

def attempt():
{body}

def answer(t):
    dist.all_reduce(t)
    if dist.get_rank() == 0:
        attempt()
    return t
"""


@pytest.fixture(scope="module")
def listening():
    """(a port of this machine, a name without a file): both answer."""
    name = f"of-a-test-{os.getpid()}"
    other = socket.socket(socket.AF_UNIX)
    with socket.create_server(("127.0.0.1", 0)) as one, other:
        other.bind("\0" + name)
        other.listen()
        yield one.getsockname()[1], name


def attempt(engine: Engine, folder: Path, body: str, **names) -> str:
    """What became of it: the message of the verdict."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    known = "\n".join(f"{name} = {value!r}" for name, value in names.items())
    code = ATTEMPT.replace("{names}", known).replace("{body}", lines)
    return grade_code(engine, folder, code).message


@pytest.mark.parametrize("name", REFUSED)
def test_attempt_is_refused(name, hiding_engine, learners, victim, listening, tmp_path):
    body, errors = REFUSED[name]
    assert hiding_engine._server is not None
    message = attempt(
        hiding_engine,
        tmp_path,
        body,
        ROOT=str(ROOT),
        OTHER=str(learners / "bob" / "03_ring_all_reduce.py"),
        FOLDERS=str(learners),
        VICTIM=str(victim),
        WATCHING=hiding_engine._server._process.pid,
        PORT=listening[0],
        NAME=listening[1],
    )
    assert any(f"raised {error}" in message for error in errors.split("|")), message


def test_the_same_attempts_succeed_on_an_ordinary_program(tmp_path, listening):
    """So what the test above sees is the isolation, not a mistake of the test."""
    other = tmp_path / "other.py"
    other.touch()
    code = "\n".join(
        [
            "import glob, os, socket",
            f"open({str(other)!r}, 'a').write('x')",
            f"assert glob.glob({str(tmp_path)!r} + '/*.py')",
            f"open({str(ROOT)!r} + '/solutions/03_ring_all_reduce.py')",
            f"os.utime({str(other)!r})",
            f"os.link({str(other)!r}, {str(tmp_path)!r} + '/mine')",
            f"socket.create_connection(('127.0.0.1', {listening[0]}), 2)",
            f"socket.socket(socket.AF_UNIX).connect('\\0' + {listening[1]!r})",
            "assert len([n for n in os.listdir('/proc') if n.isdigit()]) >= 8",
        ]
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_folder_that_holds_the_grader_itself_can_be_graded(tmp_path):
    """As by `workshop grade .` in one's own clone: it hides no programs."""
    code = (
        "import torch.distributed.pipelining\n__import__('workshop.learning_paths')\n"
    )
    code += RIGHT
    with Engine(hidden=[ROOT, ROOT.parent]) as engine:
        verdict = grade_code(engine, tmp_path, code)
    assert verdict.kind is Kind.RIGHT, verdict.message


def test_home_outside_of_the_clone_is_there_and_empty(monkeypatch, tmp_path):
    """On many clusters; tasks of PBS and ssh begin in the home."""
    home = "/mnt/home-of-a-test"  # below a folder that is hidden, as homes are
    if not os.path.isdir("/mnt"):
        pytest.skip("this machine has no /mnt")
    monkeypatch.setenv("HOME", home)
    with Engine() as engine:
        assert attempt(engine, tmp_path, f"assert os.listdir({home!r}) == []") == ""
        writes = f"open({home!r} + '/mine', 'w')"
        assert "raised OSError" in attempt(engine, tmp_path, writes)


def test_what_a_check_may_write_is_gone_afterwards(hiding_engine, tmp_path):
    body = "\n".join(
        f"open({path!r}, 'x').close()"
        for path in ("mine", "/tmp/mine", "/var/tmp/mine", "/dev/shm/mine")
    )
    for _ in range(2):  # "x" fails where the first one's is still there
        assert attempt(hiding_engine, tmp_path, body) == ""


def test_where_namespaces_are_forbidden_it_is_said(monkeypatch):
    def forbidden(*arguments):
        raise PermissionError(1, "unshare: Operation not permitted")

    monkeypatch.setattr(isolation, "enter", forbidden)
    assert "unshare: Operation not permitted" in isolation.probe()


def test_fault_of_the_grader_is_not_blamed_on_the_answer(tmp_path):
    """Here: a folder that cannot be hidden, because no path has such a name."""
    with Engine() as engine:
        engine.hidden = ["/no\0path"]
        with pytest.raises(UserError, match="the grader itself failed: ValueError"):
            grade_code(engine, tmp_path, RIGHT)


def test_grader_that_is_killed_is_no_broken_set_up(monkeypatch, tmp_path):
    """The verdict is on the answer, not on the machine of the whole room."""
    asked = []
    monkeypatch.setattr(Engine, "_run", lambda _, job, __: asked.append(job) or b"")
    verdict = grade_code(Engine(), tmp_path, RIGHT)
    assert (verdict.kind, len(asked)) == (Kind.CRASH, 2)
    assert verdict.kind.status == "wrong"
    assert "was killed twice while your code was running" in verdict.message
