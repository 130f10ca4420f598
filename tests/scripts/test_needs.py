"""A test that lacks a program of the system skips, and names what installs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import needs
from tools.strict_skips import PACKAGE
from workshop.cluster.nodes import machine

TESTS = Path(__file__).resolve().parents[1]
# Of what tests/needs.py doesn't cover: a Docker engine, a Python for another user
OWN_WORDS = {"needs.py", "docker_engine.py", "test_practice_cluster.py"}
SKIPS = re.compile(r"\b(?:pytest\.skip|skipif|importorskip)\((?:[^()]|\([^()]*\))*\)")


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine with `ssh` and no other program; the folder of its programs."""
    program = tmp_path / "ssh"
    program.touch(mode=0o755)
    monkeypatch.setattr(machine, "search_path", lambda: str(tmp_path))
    return tmp_path


def test_missing_programs_are_named_with_one_command(bare):
    assert needs.why_not("ssh") == ""
    assert needs.why_not("mpirun") == "no mpirun: sudo apt-get install openmpi-bin"
    assert needs.why_not("ssh", "ip", "tc", "sshd") == (
        "no ip, tc, sshd: sudo apt-get install iproute2 openssh-server"
    )


def test_skip_says_it_and_is_a_failure_in_ci(bare):
    with pytest.raises(pytest.skip.Exception, match="openmpi-bin") as skipped:
        needs.skip_without("mpirun")
    assert PACKAGE.search(str(skipped.value))
    needs.skip_without("ssh")


def test_mark_has_the_reason(bare):
    mark = needs.needs("mpirun").mark
    assert mark.args == (True,)
    assert mark.kwargs == {"reason": "no mpirun: sudo apt-get install openmpi-bin"}
    assert needs.needs("ssh").mark.args == (False,)


def test_cluster_is_asked_about_beside_programs(bare, monkeypatch):
    lacks = ["this machine has no munged: `sudo apt-get install munge`"]
    monkeypatch.setattr(needs, "no_cluster", lambda: lacks)
    assert needs.why_not(needs.CLUSTER, "mpirun") == (
        f"no practice cluster: {lacks[0]}; no mpirun: sudo apt-get install openmpi-bin"
    )


def test_program_of_no_known_package_is_a_mistake_of_the_test():
    with pytest.raises(KeyError, match="mpriun"):
        needs.why_not("mpriun")


def test_no_test_says_it_in_other_words():
    for path in TESTS.rglob("*.py"):
        if path.name in OWN_WORDS or path == Path(__file__):
            continue
        for skip in SKIPS.findall(path.read_text(encoding="utf-8")):
            assert "shutil.which" not in skip, f"{path.name}: use tests/needs.py"
            # tests of tools/strict_skips.py write such a skip into a file
            said = PACKAGE.search(skip) and path.name != "test_house.py"
            assert not said, f"{path.name}: use tests/needs.py"
