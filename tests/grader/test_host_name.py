"""A machine that can't resolve its own name: torchrun would hang, so we say it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workshop.doctor import host_name
from workshop.doctor import machine as doctor

ROOT = Path(__file__).resolve().parents[2]
NOT_IN_DNS = "workshop-test.invalid"  # a name that is reserved for not existing


def unnamed(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command on a machine whose host name can't be resolved."""
    world = ["unshare", "--user", "--map-root-user", "--uts"]
    rename = f'hostname {NOT_IN_DNS} && exec "$@"'
    return subprocess.run(
        [*world, "sh", "-c", rename, "sh", *command],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "PET_LOCAL_ADDR"},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module", autouse=True)
def may_rename():
    done = unnamed(["true"])
    if done.returncode:
        pytest.skip(f"this machine forbids user namespaces: {done.stderr.strip()}")


PRINT = "from workshop.doctor import host_name; print(host_name.problem())"


def test_name_that_cannot_be_resolved_is_a_broken_part_with_its_cures():
    said = unnamed([sys.executable, "-c", PRINT]).stdout
    assert f"{NOT_IN_DNS} can't be resolved" in said
    assert f"127.0.1.1 {NOT_IN_DNS}" in said and "/etc/hosts" in said
    assert "export PET_LOCAL_ADDR=127.0.0.1" in said


def test_tour_stops_before_it_trains():
    done = unnamed([sys.executable, "tools/tour.py"])
    assert done.returncode == 1
    assert done.stderr.startswith(f"tour: the host name {NOT_IN_DNS} can't be resolved")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "[1/5]" not in done.stdout


def test_cure_without_root_works():
    cure = ["env", "PET_LOCAL_ADDR=127.0.0.1"]
    assert unnamed([*cure, sys.executable, "-c", PRINT]).stdout == "('', '')\n"
    start = ["torchrun", "--standalone", "--nproc-per-node=2", "src/02_hello_ranks.py"]
    done = unnamed([*cure, *start])
    assert "sum of all ranks: 1, expected: 1" in done.stdout, done.stderr


def of_a_look_up(monkeypatch, name: str, address: str) -> tuple[str, str]:
    """What is found where this machine's name has one address."""
    pretended = f"""
import socket
entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ({address!r}, 0))
socket.getfqdn = lambda: {name!r}
socket.getaddrinfo = lambda *given, **more: [entry]
"""
    monkeypatch.setattr(host_name, "LOOK_UP", pretended + host_name.LOOK_UP)
    return host_name.problem()


def test_name_of_another_machine_is_a_broken_part(monkeypatch):
    elsewhere = "192.0.2.7"  # an address that is reserved for documentation
    what, cure = of_a_look_up(monkeypatch, "node7", elsewhere)
    assert what == f"node7 is the address {elsewhere}, which this machine doesn't have"
    assert "127.0.1.1 node7" in cure


def test_name_of_this_machine_is_fine(monkeypatch):
    assert of_a_look_up(monkeypatch, "here", "127.0.0.1") == ("", "")


def test_name_server_that_does_not_answer_is_a_broken_part(monkeypatch):
    monkeypatch.setattr(host_name, "LIMIT", 0.5)
    monkeypatch.setattr(host_name, "LOOK_UP", "import time; time.sleep(60)")
    (check,) = doctor._host_name()
    assert check.ok is False and "can't be looked up: no answer within" in check.detail
    assert not check.required, "exercises are checked without the host name"
