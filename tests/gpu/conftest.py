"""The suite for GPUs: `make gpu`.

A test marked ``gpu`` needs one to itself: elsewhere, and beside other tests, it is
skipped by name. The tests without the mark run the same functions at a tiny size on
the CPU, so that they are known to work before a GPU is paid for.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

# tools/gpu.py runs this folder without tests/scripts/conftest.py
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))


def why_not() -> str:
    """Why the tests that are marked ``gpu`` can't run here; empty if they can."""
    if not torch.cuda.is_available():
        return "no GPU that this PyTorch can use: `make gpu` runs it where there is one"
    if os.environ.get("WORKSHOP_GPU") != "1":
        return "a GPU is measured by one test at a time: `make gpu` runs it"
    return ""


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    reason = why_not()
    for item in items:
        marked = here in item.path.parents and item.get_closest_marker("gpu")
        if marked and reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def gpu():
    """The first GPU, with nothing of an earlier test in its memory."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    yield torch.device("cuda", 0)
    torch.cuda.empty_cache()
