"""Run the suite for a GPU: make gpu.

    python tools/gpu.py                 everything, with the Python that has torch
    python tools/gpu.py -k memory       what follows is handed to pytest

It needs no network: of packages only those of the programs in src/, and pytest. What it
measured and what programs printed is left in build/gpu. Pages show a transcript that
you copy from there into docs/transcripts/gpu, where they have `.. on-a-gpu:: NAME`.

Its tests took eleven minutes in all on one H200, with torch 2.11 (2026-11-29): they ran
in parts, some of them beside each other. Those of several GPUs have never run.

Exit status: that of pytest; 2 where there is no GPU that this PyTorch can use.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITE = "tests/gpu"
BUILD = ROOT / "build" / "gpu"
NEEDED = "torch", "pytest", "tqdm", "sklearn"
# Neither the grader's plugin nor tests/conftest.py: they need more packages
ALONE = ("-o", "addopts=--import-mode=importlib", f"--confcutdir={SUITE}")


def problem() -> str:
    """Why the suite can't run here, in one sentence; empty if it can."""
    for package in NEEDED:
        if not importlib.util.find_spec(package):
            return f"{sys.executable} has no {package}: name a Python that has it"
    import torch  # here: a Python without it gets a sentence

    if not torch.cuda.is_available():
        return (
            f"PyTorch {torch.__version__} finds no GPU here: run it where there is "
            "one, or `make test`, which runs the suite's functions on the CPU"
        )
    return ""


def command(arguments: list[str]) -> list[str]:
    """The pytest that runs what is marked ``gpu``, one test at a time."""
    words = [sys.executable, "-m", "pytest", *ALONE, "-p", "no:cacheprovider"]
    return [*words, "-m", "gpu", "-v", "-rs", *arguments, SUITE]


def tables_since(begin: float) -> list[str]:
    """The tables that tests have written, of which a page shows some."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in sorted(BUILD.glob("*.gpu.txt"))
        if path.stat().st_mtime >= begin
    ]
    return [text for text in texts if text.startswith("$ python tools/gpu.py")]


def main() -> int:
    refused = problem()
    if refused:
        print(f"gpu: error: {refused}", file=sys.stderr)
        return 2
    words = command(sys.argv[1:])
    print(f"$ {' '.join(words)}", flush=True)
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    more = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "WORKSHOP_GPU": "1"}
    start, begin = time.monotonic(), time.time()
    status = subprocess.run(words, cwd=ROOT, env={**os.environ, **more}).returncode
    print(f"{time.monotonic() - start:.0f} seconds")
    for table in tables_since(begin):
        print(f"\n{table}")
    for pattern in ("*.json", "*.gpu.txt"):
        found = sorted(BUILD.glob(pattern))
        print(f"{len(found)} files {BUILD.relative_to(ROOT)}/{pattern}")
    return status


if __name__ == "__main__":
    sys.exit(main())
