"""Environments with other releases of PyTorch, for tests of `make test FULL=1`."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests import own_network
from tools import torches

# not a fork of the warm server: it asks the package index, so it leaves our network
PYTHON = os.environ.get("WARM_COLD_PYTHON", sys.executable)


@cache
def why_missing(version: str) -> str:
    """Make the environment unless it is there; why that can't be done, or ""."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WARM_")}
    done = subprocess.run(
        [PYTHON, torches.__file__, version],
        env=kept,
        preexec_fn=own_network.leave,
        capture_output=True,
        text=True,
    )
    return done.stderr.strip() if done.returncode else ""


def python_with(version: str) -> Path:
    """The Python of an environment with this release; skip if it can't be had."""
    if why := why_missing(version):
        pytest.skip(why)
    return torches.python_of(version)
