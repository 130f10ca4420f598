"""Ctrl-C while a practice cluster starts: what was started is known, and ended."""

import os
import signal
import subprocess
import threading

import pytest

from workshop.cluster.nodes.cluster import interrupted_later, wait_for_end
from workshop.cluster.nodes.state import has_ended


def test_ctrl_c_comes_when_the_block_has_ended():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupted_later():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("started")
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_command_that_ignores_ctrl_c_still_does():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupted_later():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_may_start_a_cluster_too():
    done = []

    def start():
        with interrupted_later():
            done.append("started")

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert done == ["started"]


def test_waiting_for_an_end_takes_as_long_as_the_process():
    process = subprocess.Popen(["sleep", "0.2"])
    wait_for_end(process.pid)
    assert has_ended(process.pid)
    process.wait()
