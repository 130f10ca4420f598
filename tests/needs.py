"""What a test needs of the system: without it, it skips and names the cure.

``@needs("mpirun")`` marks a test, ``skip_without("mpirun")`` is for fixtures. The
reason has the command that installs what is missing, ``sudo apt-get install PACKAGE``:
continuous integration turns these skips into failures (`tools/strict_skips.py`).
CLUSTER stands for all that a practice cluster needs, rights as well as packages.
"""

from __future__ import annotations

import functools
import shutil

import pytest

from tools.debian_packages import PACKAGES
from workshop.cluster.nodes import machine

CLUSTER = "practice cluster"  # as the catalog of transcripts calls it
# of every Debian, however small
ESSENTIAL = {"unshare": "util-linux"}
PACKAGE_OF = ESSENTIAL | {
    program: name for name, package in PACKAGES.items() for program in package.programs
}


def path_of(program: str) -> str | None:
    """Where a program is; daemons are in folders that a user's PATH may lack."""
    return shutil.which(program, path=machine.search_path())


@functools.cache
def no_cluster() -> list[str]:
    """Why there can be no practice cluster; asked once, as it tries a namespace."""
    return machine.missing()


def why_not(*needed: str) -> str:
    """Why a test that needs this cannot run here, with the cure; empty if it can.

    Raises:
        KeyError: no package is known for a program.
    """
    programs = [name for name in needed if name != CLUSTER]
    packages = {name: PACKAGE_OF[name] for name in programs}
    absent = [name for name in programs if path_of(name) is None]
    reasons = []
    if CLUSTER in needed:
        reasons += [f"no {CLUSTER}: {reason}" for reason in no_cluster()]
    if absent:
        install = " ".join(dict.fromkeys(packages[name] for name in absent))
        reasons.append(f"no {', '.join(absent)}: sudo apt-get install {install}")
    return "; ".join(reasons)


def needs(*needed: str) -> pytest.MarkDecorator:
    """A mark for tests that need programs, or CLUSTER."""
    reason = why_not(*needed)
    return pytest.mark.skipif(bool(reason), reason=reason)


def skip_without(*needed: str) -> None:
    """Skip the test whose fixture, or body, needs programs, or CLUSTER."""
    if reason := why_not(*needed):
        pytest.skip(reason)
