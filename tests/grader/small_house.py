"""A workshop of three tiny exercises, and ways to use its command in tests.

``workshop()`` runs the command in a process of its own, with a stand-in for the
engine that obeys a comment in the learner's file (``# play: wrong``), so that the
command is tested in fractions of a second; ``real=True`` takes the real engine.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from workshop.skeleton import skeleton_text

Result = subprocess.CompletedProcess[str]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOUSE = Path(__file__).resolve().parents[2]
NAMES = ("01_one", "02_two", "03_three")
PATIENCE = 300  # seconds by the clock; 60 were passed at a load of 25 on 2 cores
SOLUTION = '''"""Add {number}: edit ``add``, then ``workshop check {name}``."""


def add(a):
    # TODO 1 of 1: return a plus {number}.
    # [start answer 1]
    return a + {number}
    # [end answer 1]
'''
CHECKS = '''import pytest
from workshop.grader import expect


@pytest.mark.ranks(1)
def test_adds(exercise, rank):
    """It adds {number}."""
    expect.equal(exercise.add(1), 1 + {number}, "the sum")
'''
ENTRY = """[[exercise]]
name = "{name}"
title = "Add number {number}"
lesson = "0{number}_lesson"
minutes = {minutes}
points = {number}
hints = ["Think.", "Think [bold]harder[/bold].", "It is a + {number}."]

"""
DRIVER = """
import sys
sys.path.insert(0, sys.argv.pop(1))
if sys.argv.pop(1) == "play":
    from tests.grader import played_engine
    sys.modules["workshop.grader.engine.engine"] = played_engine
from workshop.cli import main
main()
"""


def make_house(root: Path) -> Path:
    """Catalog, solutions, checks, and untouched exercises; returns ``root``."""
    for folder in ("exercises", "solutions", "tests/exercises"):
        (root / folder).mkdir(parents=True)
    catalog = ""
    for number, name in enumerate(NAMES, start=1):
        words = {"number": number, "name": name, "minutes": 5 * number}
        solution = SOLUTION.format(**words)
        (root / "solutions" / f"{name}.py").write_text(solution)
        (root / "exercises" / f"{name}.py").write_text(skeleton_text(solution))
        checks = root / "tests" / "exercises" / name / "checks.py"
        checks.parent.mkdir()
        checks.write_text(CHECKS.format(**words))
        catalog += ENTRY.format(**words)
    (root / "exercises" / "catalog.toml").write_text(catalog)
    return root


def play(root: Path, name: str, order: str, remark: str = "") -> Path:
    """Let the learner's file of ``name`` play ``order`` ("right", "sleep 60" ...)."""
    path = root / "exercises" / f"{name}.py"
    write(path, f"# play: {order}\n# {remark}\ndef add(a):\n    return a\n")
    return path


def write(path: Path, text: str) -> None:
    """As many editors do: a new file that takes the old one's name."""
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    os.replace(temporary, path)


def command(*words: str, real: bool = False) -> list[str]:
    mode = "real" if real else "play"
    return [sys.executable, "-c", DRIVER, str(HOUSE), mode, *words]


def workshop(
    root: Path, *words: str, real: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``workshop WORDS`` in the folder ``root``."""
    return subprocess.run(
        command(*words, real=real),
        cwd=root,
        env=quiet_environment() | environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
    )


def start(root: Path, *words: str) -> subprocess.Popen[str]:
    """The same in the background."""
    return subprocess.Popen(
        command(*words),
        cwd=root,
        env=quiet_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def quiet_environment() -> dict[str, str]:
    """Ours without what would change colors, widths, or the tests of the tests."""
    drop = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "CI")
    kept = {key: value for key, value in os.environ.items() if key not in drop}
    return kept | {"TERM": "xterm-256color", "PYTHONDONTWRITEBYTECODE": "1"}


def graded(root: Path) -> list[str]:
    """What the stand-in noted: ``begin ORDER``, ``end ORDER``, ``cancelled ORDER``."""
    try:
        return (root / "played.log").read_text().splitlines()
    except FileNotFoundError:
        return []


def sentence(result: Result, status: int = 2) -> str:
    """The one line that a refused command prints."""
    assert result.returncode == status, result
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("workshop: "), result.stderr
    return lines[0]


def states(house: Path) -> dict[str, str]:
    """Name -> state, as ``workshop list`` shows them."""
    listed = workshop(house, "list", COLUMNS="80").stdout.splitlines()
    rows = [line.split("|") for line in listed]
    return {row[0].strip(): row[-1].strip() for row in rows if len(row) == 4}


def grade(house: Path, *words: str, **options) -> tuple[Result, dict, dict]:
    """Grade with all three outputs; (result, JSON by learner, CSV by learner)."""
    files = ["--json", "out.json", "--csv", "out.csv", "--junit", "out.xml"]
    result = workshop(house, "grade", *words, *files, **options)
    assert "Traceback" not in result.stderr
    return result, *read_results(house)


def read_results(house: Path) -> tuple[dict, dict]:
    """What `grade` wrote: (JSON by learner, CSV by learner)."""
    learners = json.loads((house / "out.json").read_text())["learners"]
    with open(house / "out.csv", newline="") as file:
        rows = {row["learner"]: row for row in csv.DictReader(file)}
    return {one["learner"]: one for one in learners}, rows


def statuses(learner: dict) -> list[str]:
    return [one["status"] for one in learner["exercises"]]


class Terminal:
    """A process in a pseudo terminal of 80 columns, as a person would use it."""

    def __init__(self, root: Path, words: list[str]):
        self.master, self.slave = pty.openpty()
        size = struct.pack("HHHH", 24, 80, 0, 0)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, size)
        self.before = termios.tcgetattr(self.slave)
        self.raw = ""
        self.output = ""  # without colors and movements of the cursor
        self._read_up_to = 0
        self.process = subprocess.Popen(
            words,
            cwd=root,
            env=quiet_environment(),
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            preexec_fn=self._take_terminal,
        )

    def _take_terminal(self) -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exception) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def send(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def wait_for(self, text: str) -> str:
        """Read until ``text`` appears behind what was waited for before."""
        end = time.monotonic() + PATIENCE
        while (found := self.output.find(text, self._read_up_to)) < 0:
            left = end - time.monotonic()
            assert left > 0, f"no {text!r} in:\n{self.output}"
            self._read(min(left, 0.2))
            if self.process.poll() is not None:
                self._read(0.1)
                assert text in self.output[self._read_up_to :], self.output
        seen = self.output[self._read_up_to : found + len(text)]
        self._read_up_to = found + len(text)
        return seen

    def _read(self, timeout: float) -> None:
        if select.select([self.master], [], [], timeout)[0]:
            with contextlib.suppress(OSError):
                data = os.read(self.master, 1 << 16)
                self.raw += data.decode("utf-8", "replace")
                self.output = ESCAPES.sub("", self.raw).replace("\r", "")

    def ended(self) -> int:
        """The exit status; output is read meanwhile so that nothing blocks."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, f"did not end:\n{self.output}"
            self._read(0.1)
        self._read(0.05)
        return self.process.returncode

    def mode_is_as_before(self) -> bool:
        return termios.tcgetattr(self.slave)[:4] == self.before[:4]

    def interrupt(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)
