"""What the suite for GPUs leaves in build/gpu: numbers, and what programs printed.

NAME.json       what a test measured, beside the card, driver, torch and date
NAME.gpu.txt    a command and its output, with a last line as docs/transcripts have
"""

from __future__ import annotations

import datetime
import functools
import json
import shutil
import subprocess
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "gpu"


@functools.cache
def machine() -> dict[str, str | int]:
    """The card, how many there are, the driver, torch and the day."""
    found: dict[str, str | int] = {
        "card": "CPU",
        "cards": 0,
        "driver": "none",
        "cuda": torch.version.cuda or torch.version.hip or "none",
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
    }
    if torch.cuda.is_available():
        found["card"] = torch.cuda.get_device_name(0)
        found["cards"] = torch.cuda.device_count()
        found["driver"] = driver_version()
    return found


def driver_version() -> str:
    """As nvidia-smi says it; "unknown" where there is none, as with ROCm."""
    if not shutil.which("nvidia-smi"):
        return "unknown"
    question = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(question, capture_output=True, text=True, timeout=60)
    lines = done.stdout.split()
    return lines[0] if lines else "unknown"


def last_line() -> str:
    """``Recorded with torch ...``, as transcripts end."""
    on = "{torch} on {date}, on {card}, driver {driver}".format(**machine())
    return f"Recorded with torch {on}\n"


def write_numbers(
    name: str, found: object, table: list[str] | None = None, folder: Path = BUILD
) -> Path:
    """``found`` and where it was measured, in NAME.json.

    A page shows the lines of ``table``, in NAME.gpu.txt: NAME chooses the test by -k.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    content = {"machine": machine(), "found": found}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if table:
        lines = [f"$ python tools/gpu.py -k {name}", *table]
        write_transcript(name, "\n".join(lines), folder)
    return path


def write_transcript(name: str, text: str, folder: Path = BUILD) -> Path:
    """What a command printed, in NAME.gpu.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.gpu.txt"
    path.write_text(f"{text.rstrip()}\n{last_line()}", encoding="utf-8")
    return path
