"""A pytest plugin for CI: on a slow machine, long tests that come late are left out.

CI has 90 minutes, and a machine that others use may be half as fast as on another day.
Then a run that tells of nearly all tests is worth more than one that is cut off and
tells of none. WORKSHOP_UNTIL is a time in seconds since 1970: after it, no test begins
that only `make test FULL=1` runs. Each is skipped with its reason, and
the last line of tools/run_tests.py says how many they were.
"""

from __future__ import annotations

import os
import time

import pytest

UNTIL = "WORKSHOP_UNTIL"
REASON = "the time of this run is up"


def pytest_runtest_setup(item: pytest.Item) -> None:
    until = float(os.environ.get(UNTIL) or "inf")
    if item.get_closest_marker("full") and time.time() > until:
        pytest.skip(REASON)
