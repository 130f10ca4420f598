"""Runs a command by a cold Python and by a warm one, side by side, and compares.

What differs from run to run in any case (process numbers, times, addresses) is put out
of sight on both sides.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 120  # seconds; each takes about 5 on an idle machine


def wrappers() -> Path:
    """The folder of a warm session's wrappers."""
    if sys.platform != "linux":
        pytest.skip("warm starts need Linux")
    return Path(os.environ["WARM_PYTHON_BIN"])  # tests/conftest.py has set it


def hidden(text: str) -> str:
    """What differs from run to run in any case."""
    text = re.sub(r"0x[0-9a-f]+", "0x0", text)
    text = re.sub(r"\b[WEI]\d{4} [\d:.]+ \d+ ", "LOG ", text)
    text = re.sub(r"\d{4}-\d\d-\d\d_[\d:]+", "TIME", text)
    text = re.sub(r"pid:? \d+|PID \d+|(?:process|Process) \d+", "pid N", text)
    text = re.sub(r"/tmp/warm-\w+/venv|\S+/\.venv", "VENV", text)
    text = re.sub(r"(bash: line \d+: +)\d+", r"\1N", text)
    # a fork has more modules loaded; where in a line a signal came is chance
    text = re.sub(r"\n\nExtension modules: .*", "", text)
    return re.sub(r"(?m)^( +[~^]+|.*host +:.*)\n", "", text)


def start(command, folder: Path, cold: bool, **options):
    environment = {**os.environ, "PATH": f"{wrappers()}:{os.environ['PATH']}"}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""}
    if cold:
        environment["COLD_PYTHON"] = "1"
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def outcome(process, folder: Path) -> dict:
    out, err = process.communicate(timeout=LIMIT)
    files = sorted(
        f"{path.name} {path.stat().st_size}"
        for path in folder.iterdir()
        if path.name != "__pycache__"
    )
    shown = {"out": hidden(out), "err": hidden(err)}
    shown = {k: v.replace(str(folder), "FOLDER").splitlines() for k, v in shown.items()}
    return {"status": process.returncode, "files": files, **shown}


def both(command, tmp_path: Path, fill, strike=None, ready: int = 1, **options):
    """The outcomes of a command cold and warm, which run side by side.

    Args:
        fill: writes into the folder that the command runs in.
        strike: called with each process when it has printed "ready".
        ready: how often it prints that.
    """
    running = {}
    for name in ("cold", "warm"):
        folder = tmp_path / name
        folder.mkdir()
        fill(folder)
        running[name] = start(command, folder, name == "cold", **options), folder
    if strike:
        for process, _ in running.values():
            for _ in range(ready):
                assert process.stdout.readline() == "ready\n"
            strike(process)
    return [outcome(*pair) for pair in running.values()]
