"""src/instruments/08_link_speed.py: what it times, and how it is started."""

import re
import sys
from importlib import import_module

import pytest
import torch

from tests.launched import STANDALONE, run
from tests.scripts.trainings import SRC

SCRIPT = SRC / "instruments/08_link_speed.py"
link_speed = import_module("instruments.08_link_speed")


def test_the_shortest_time_counts_and_the_wait_for_the_last_rank_does_not(monkeypatch):
    """The clock starts after a barrier: a late rank would make the link look slow."""
    calls, clock = [], iter([0, 5, 10, 12, 20, 24])
    fake = link_speed.dist
    monkeypatch.setattr(fake, "barrier", lambda: calls.append("barrier"))
    monkeypatch.setattr(fake, "all_reduce", lambda x: calls.append(x.numel()))

    def now():
        calls.append("clock")
        return next(clock)

    monkeypatch.setattr(link_speed.time, "perf_counter", now)
    assert link_speed.time_all_reduce(torch.ones(7), 3) == 2
    assert calls == 3 * ["barrier", "clock", 7, "clock"]


@pytest.mark.full
def test_rank_0_prints_a_tiny_and_a_large_message(tmp_path):
    done = run(tmp_path, [*STANDALONE, "--nproc-per-node=2", SCRIPT, "--repeats", "2"])
    assert done.returncode == 0, done.stderr
    first, *times = done.stdout.splitlines()
    assert first == "all-reduce over 2 ranks, each on CPU, 1 thread, backend gloo"
    sizes = [re.fullmatch(r" *(.+): +\d+\.\d\d ms", line)[1] for line in times]
    assert sizes == ["4 bytes", "16 MiB"]
    assert (4 * link_speed.TINY, 4 * link_speed.LARGE) == (4, 16 * 2**20)


def test_no_repeats_are_refused_in_one_sentence(tmp_path):
    done = run(tmp_path, [sys.executable, SCRIPT, "--repeats", "0"])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "--repeats" in done.stderr
