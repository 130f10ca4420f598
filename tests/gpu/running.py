"""Starting programs of src/ for the suite on GPUs, as readers type them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch

from tests.gpu.results import ROOT
from tests.launched import finish, start

LIMIT = 150  # seconds for one command
LINKED = "src", "gallery", "docs"  # what commands name
VISIBLE = os.environ.get("CUDA_VISIBLE_DEVICES")


def workplace(folder: Path) -> Path:
    """A folder in which ``python src/NAME.py`` works, and what it writes is its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in LINKED:
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    return folder


def words_of(command: str) -> list[str]:
    """``python`` and ``torchrun`` of this interpreter, whatever is on the path."""
    ours = {"python": [sys.executable]}
    ours["torchrun"] = [sys.executable, "-m", "torch.distributed.run"]
    return [part for word in command.split() for part in ours.get(word, [word])]


def begin(folder: Path, command: str, kind: str, **variables: str) -> subprocess.Popen:
    """Start a command; on ``kind`` "cpu", it sees no device."""
    if kind != "cpu":
        # tests/launched.py hides them from what it starts
        variables["CUDA_VISIBLE_DEVICES"] = VISIBLE or all_devices()
    variables.setdefault("PYTHONPATH", "")
    return start(workplace(folder), words_of(command), **variables)


def all_devices() -> str:
    """Their numbers, as CUDA_VISIBLE_DEVICES lists them."""
    return ",".join(map(str, range(torch.cuda.device_count())))


def run(
    folder: Path, command: str, kind: str, limit: int = LIMIT, **variables: str
) -> subprocess.CompletedProcess:
    """Run a command to its end."""
    return finish(begin(folder, command, kind, **variables), limit)


def shown(command: str, done: subprocess.CompletedProcess) -> str:
    """The command and what it printed, as a transcript shows them."""
    text = f"$ {command}\n{done.stdout}".rstrip()
    if done.returncode:
        text += f"\n{done.stderr.rstrip()}\n[exit status {done.returncode}]"
    return text
