"""A pytest plugin for CI: what has just passed without system packages runs once.

CI runs `make test` with the Debian packages out of reach, and then `make test FULL=1`
on the same commit and machine. A test that passed the first time, and whose file names
no program of those packages, would do the same again.

WORKSHOP_PASSES names a folder: the first run, which has WORKSHOP_PASSES_WRITTEN=1,
leaves there what passed, each part in a file of its own; the second one leaves it out,
and says how many tests those are.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `pytest`, which has no folder on the path
from tests.dependents import files_that_name  # noqa: E402
from tools.debian_packages import PACKAGES  # noqa: E402

FOLDER = "WORKSHOP_PASSES"
WRITTEN = "WORKSHOP_PASSES_WRITTEN"


def leaves_out() -> bool:
    """Whether a run before has left its list, and this one is to leave that out."""
    return bool(os.environ.get(FOLDER)) and not os.environ.get(WRITTEN)


def files_of_packages() -> set[str]:
    """The files of tests, seen from the root, that name a program of a package."""
    programs = tuple(name for package in PACKAGES.values() for name in package.programs)
    return {str(path.relative_to(ROOT)) for path in files_that_name(programs)}


def file_of(test: str) -> str:
    """The file of a test, from its id."""
    return test.partition("::")[0]


def passes_in(folder: Path) -> set[str]:
    """The ids of all tests that have passed, as the runs before have written them."""
    lists = [path.read_text("utf-8") for path in folder.glob("*.txt")]
    return {line for text in lists for line in text.splitlines()}


class Writes:
    """Keeps the ids of the tests that pass, and writes them when the run is over."""

    def __init__(self, folder: Path):
        self.folder, self.passed = folder, []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{os.getpid()}.txt"
        file.write_text("".join(f"{one}\n" for one in self.passed), encoding="utf-8")


class LeavesOut:
    """Deselects what passed before."""

    def __init__(self, folder: Path):
        depend = files_of_packages()
        self.known = {one for one in passes_in(folder) if file_of(one) not in depend}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        left_out = [item for item in items if item.nodeid in self.known]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in self.known]

    def pytest_terminal_summary(self, terminalreporter) -> None:
        count = len(self.known)
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.write_line(
            f"left out, since they passed before: {tests} of all parts"
        )


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(os.environ[FOLDER])
    if leaves_out():
        config.pluginmanager.register(LeavesOut(folder))
    elif not hasattr(config, "workerinput"):  # a worker's reports reach the first one
        config.pluginmanager.register(Writes(folder))
