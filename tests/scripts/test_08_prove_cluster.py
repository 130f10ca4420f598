"""08_prove_cluster.py on one machine: its page, its numbers, what it refuses.

In jobs of several nodes: tests/jobs/test_08_prove_in_jobs.py.
"""

import json
import socket
from importlib import import_module

import pytest
import torch

from tests.launched import STANDALONE, run
from tests.scripts.trainings import SRC
from workshop.doctor.proof import judge

SCRIPT = SRC / "instruments/08_prove_cluster.py"
prove_cluster = import_module("instruments.08_prove_cluster")


def test_busbw_is_that_of_the_fastest_all_reduce_after_the_first(monkeypatch):
    """The first connects. On 4 ranks, a link carries 1.5 times the tensor's bytes."""
    dist = prove_cluster.dist
    sent = []
    monkeypatch.setattr(dist, "barrier", lambda group: None)
    monkeypatch.setattr(dist, "all_reduce", lambda x, group: sent.append(x.nbytes))
    monkeypatch.setattr(dist, "get_world_size", lambda group: 4)
    clock = iter([0, 0.1, 1, 5, 10, 12, 20, 24, 30, 34, 40, 44])
    monkeypatch.setattr(prove_cluster.time, "perf_counter", lambda: next(clock))
    rate = prove_cluster.busbw(4096, None, torch.device("cpu"))
    assert rate == 1.5 * 4096 / 2
    assert sent == 6 * [4096]


def test_two_ranks_of_one_machine_are_proven_and_nothing_is_wrong(tmp_path):
    words = [*STANDALONE, "--nproc-per-node=2", SCRIPT, "4", "2"]
    words += ["--snapshot", tmp_path / "s.pt", "--report", tmp_path / "r.json"]
    done = run(tmp_path, words)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "proving 2 ranks, each on CPU, 1 thread, backend gloo"
    assert "resumed from a snapshot: the same parameters" in lines
    report = json.loads((tmp_path / "r.json").read_text())
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert {rank["host"] for rank in report["ranks"]} == {socket.gethostname()}
    assert list(report["busbw"]) == ["inside a node"]
    assert all(rate > 0 for rate in report["busbw"]["inside a node"].values())
    # what this machine lacks, such as cores, is another matter
    assert not [line for line in judge(report) if "resume" in line or "see" in line]


def test_snapshot_that_cannot_be_written_is_one_sentence(tmp_path):
    words = [*STANDALONE, "--nproc-per-node=2", SCRIPT, "--snapshot", "no/where.pt"]
    done = run(tmp_path, words)
    assert done.returncode != 0
    assert "no/where.pt: cannot write in the folder no" in done.stderr


@pytest.mark.parametrize(
    "cores, shown",
    [([], ""), ([3], "3"), ([0, 1], "0-1"), ([0, 1, 2, 5, 8, 9], "0-2,5,8-9")],
)
def test_cores_of_a_rank_are_shown_as_ranges(cores, shown):
    assert prove_cluster.as_ranges(cores) == shown
