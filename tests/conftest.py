"""What all tests rely on: Ctrl-C interrupts, and tests of jobs are marked ``nodes``.

A shell starts background jobs with SIGINT ignored, and whatever they start inherits
that; programs under test would then not notice the Ctrl-C that a test sends them.
"""

import signal
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

JOBS = Path(__file__).parent / "jobs"


def pytest_collection_modifyitems(items):
    for item in items:
        if JOBS in item.path.parents:
            item.add_marker(pytest.mark.nodes)
