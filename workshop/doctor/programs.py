"""A line of the report, and what asks programs for one with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

COMMAND_LIMIT = 5


@dataclass(frozen=True)
class Check:
    """One line of the report.

    ``ok`` is True, False, or None for something optional that is not there.
    ``required`` parts are those without which no exercise can be checked.
    """

    name: str
    ok: bool | None
    detail: str
    cure: str = ""
    required: bool = False


def probe(code: str, limit: float, *arguments: str) -> dict | str:
    """What a Python process of its own found, or why it failed, in a few words."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # What a surrounding launcher has set would make the two ranks look for others.
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        environment.pop(name, None)
    command = [sys.executable, "-c", code, *arguments]
    status, output = run(command, limit, environment)
    if status is None:
        return output
    lines = [line for line in output.splitlines() if line.strip()]
    if status:
        return shorten(lines[-1]) if lines else f"exit status {status}"
    for line in reversed(lines):
        if line.startswith("{"):
            return json.loads(line)
    return "it printed nothing"


def tool(name: str, command: list[str]) -> Check:
    """A program's own word on its version: the first line it prints."""
    status, output = run(command, COMMAND_LIMIT)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # Wrapper scripts may complain before the program speaks.
    lines = [line for line in lines if re.search(r"\d\.\d", line)] or lines
    first = shorten(lines[0]) if lines else "no output"
    if status == 0:
        return Check(name, True, first)
    return Check(name, None, f"{Path(command[0]).name} is there, but fails: {first}")


def apt(package: str) -> str:
    """The command that installs a Debian package; empty where there is no apt."""
    return f"sudo apt-get install {package}" if shutil.which("apt-get") else ""


def shorten(line: str, width: int = 100) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."


def run(
    command: list[str], limit: float, environment: dict[str, str] | None = None
) -> tuple[int | None, str]:
    """Exit status and output (stdout, then stderr); None and why if it cannot run.

    At the limit the command's whole process group is killed: a hung ``sinfo`` or
    rank leaves nothing behind, and its open pipes cannot block us.
    """
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return None, f"{Path(command[0]).name} cannot be run: {error.strerror}"
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None, f"no answer within {limit:.0f} s"
    return process.returncode, output.decode("utf-8", "replace")
