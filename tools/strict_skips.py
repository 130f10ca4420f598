"""A pytest plugin for CI: a test may not skip because a system package is missing.

On a learner's machine such a test is skipped, and its reason names the command that
installs the package (``sudo apt-get install ...``). Where everything is installed
on purpose, the same skip would hide that a test never ran::

    pytest -p tools.strict_skips tests
"""

from __future__ import annotations

import re
from collections.abc import Generator

import pytest

PACKAGE = re.compile(r"\bapt(-get)? install\b")


def _fail_if_a_package_is_missing(
    report: pytest.TestReport | pytest.CollectReport,
) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    if report.skipped and PACKAGE.search(str(reason)):
        report.outcome = "failed"
        report.longrepr = f"CI must not skip this: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    report = yield
    _fail_if_a_package_is_missing(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    """The same for a whole file that skips itself."""
    report = yield
    _fail_if_a_package_is_missing(report)
    return report
