"""A pytest plugin for CI: on a slow machine, long tests that come late are left out.

CI has 90 minutes, and a machine that others use may be half as fast as on another day.
Then a run that tells of nearly all tests is worth more than one that is cut off and
tells of none. WORKSHOP_UNTIL is a time in seconds since 1970: after it, no test begins
that `make test` leaves to FULL=1 or to `make nightly`. Each is skipped with its reason,
and the last line of tools/run_tests.py says how many they were.
"""

from __future__ import annotations

import math
import os
import time

import pytest

UNTIL = "WORKSHOP_UNTIL"
REASON = "the time of this run is up"


def end_of_run() -> float:
    """Seconds since 1970; infinite without a limit."""
    return float(os.environ.get(UNTIL) or "inf")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("full") and time.time() > end_of_run():
        pytest.skip(REASON)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with another file in each run: what one leaves out, a later one runs."""
    files = list(dict.fromkeys(item.path for item in items))
    if not files or math.isinf(end_of_run()):
        return
    first = int(end_of_run()) % len(files)
    places = {file: place for place, file in enumerate(files[first:] + files[:first])}
    items.sort(key=lambda item: places[item.path])
