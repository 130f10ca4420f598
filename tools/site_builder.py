"""Build the site into ``_build/html``; a warning is an error (``make site``)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html" / "index.html"
NEEDS_PYTHON = (
    "the site needs Python 3.11 or newer (its Sphinx does), everything else here "
    "works with this one; to build it: make PYTHON=python3.11 site"
)


def why_not() -> str:
    """Why this Python cannot build the site, as a sentence; empty if it can."""
    if sys.version_info < (3, 11):
        return NEEDS_PYTHON
    if importlib.util.find_spec("sphinx") is None:
        return "Sphinx is not installed: make site brings it"
    return ""


def build_command() -> list[str]:
    """What builds the site: nitpicky, offline, all warnings shown before it fails."""
    build = ["-m", "sphinx", "-W", "-n", "--keep-going", "-q", "-b", "html"]
    doctrees = ["-d", "_build/doctrees"]
    return [sys.executable, *build, *doctrees, ".", "_build/html"]


def main() -> int:
    if sentence := why_not():
        print(f"site: {sentence}", file=sys.stderr)
        return 2
    status = subprocess.run(build_command(), cwd=ROOT).returncode
    if status == 0:
        print(f"The site is in {SITE.relative_to(ROOT)}; make serve shows it")
    return status


if __name__ == "__main__":
    sys.exit(main())
