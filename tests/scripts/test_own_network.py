"""Tests that run side by side do not share ports (tests/own_network.py)."""

import os
import subprocess
import sys

import pytest

from tools.fresh_copy import ROOT

# Both listen on one port until both do; test_two.py is the other worker's.
LISTEN = """
import pathlib, socket, time

def test_port_is_free():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 29499))
        listener.listen()
        pathlib.Path(__file__).with_suffix(".listens").touch()
        end = time.monotonic() + 60
        while len(list(pathlib.Path(__file__).parent.glob("*.listens"))) < 2:
            assert time.monotonic() < end, "the other one never came"
            time.sleep(0.01)
"""


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives workers networks")
def test_workers_of_pytest_have_networks_of_their_own(tmp_path):
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(LISTEN)
    plugin = ["-p", "tests.conftest", "--rootdir", tmp_path, "-c", os.devnull]
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "--dist=loadfile", *plugin]
    done = subprocess.run(
        [*command, tmp_path], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
