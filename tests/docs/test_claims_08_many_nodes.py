"""What docs/lessons/08_many_nodes.rst says of many nodes, tried out.

The four ways in which nodes never meet: tests/jobs/test_never_meet.py. That rank 0
alone writes, and the order of the ranks: tests/scripts/test_multinode_spawn.py.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "docs" / "transcripts"


def accuracies() -> list[float]:
    text = (RECORDED / "08_batch.txt").read_text(encoding="utf-8")
    return [float(found) for found in re.findall(r"accuracy ([\d.]+)%", text)]


def milliseconds() -> list[list[float]]:
    """[plain, rate, delay], each with the tiny and the large all-reduce."""
    text = (RECORDED / "08_slow_network.txt").read_text(encoding="utf-8")
    times = [float(found) for found in re.findall(r"([\d.]+) ms", text)]
    return [times[i : i + 2] for i in (0, 2, 4)]


def test_recorded_batches_show_what_the_page_says():
    """The second ends where the first did; less is learnt; part is made good."""
    one, same_global, same_local, scaled = accuracies()
    assert abs(one - same_global) < 0.5
    assert same_local < one - 2
    assert same_local < scaled < one


def test_recorded_network_shows_what_the_page_says():
    """A limited rate hits the large tensor, a delay hits the tiny one hardest."""
    plain, rate, delay = milliseconds()
    assert rate[1] > 2 * plain[1], "record 08_slow_network on a machine with less to do"
    assert delay[0] > 5 * plain[0]
    assert delay[0] / plain[0] > 3 * delay[1] / plain[1]
    # what no machine can beat: 16 MiB at 1 Gbit/s, and one way of 1 ms
    assert rate[1] > 16 * 2**20 * 8 / 1e9 * 1000
    assert delay[0] > 1


@pytest.mark.parametrize("name", ["is_rank_0()", "read_for_all", "choose_device("])
def test_places_that_deserve_a_second_look_are_there(name):
    assert name in (ROOT / "src" / "multinode_spawn.py").read_text(encoding="utf-8")


def test_agents_wait_for_ten_minutes():
    from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
        RendezvousTimeout,
    )

    assert RendezvousTimeout().join.total_seconds() == 600
