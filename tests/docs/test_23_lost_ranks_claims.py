"""What the pages on lost ranks say of numbers, of the store, and of recorded runs."""

import re
import sys

import torch.distributed as dist

from tests.docs.pages import ROOT

sys.path.append(str(ROOT / "src"))
from common import quorum

TRANSCRIPTS = ROOT / "docs" / "transcripts"


def page(name):
    return (ROOT / "docs/lessons/23_loose_coupling" / name).read_text("utf-8")


def recorded(name):
    return (TRANSCRIPTS / f"{name}.txt").read_text("utf-8")


def test_interruptions_of_llama_3():
    hours = 54 * 24 / 419
    assert f"{hours:.1f}" == "3.1"
    assert "one every 3.1 hours" in " ".join(page("3_lost_rank.rst").split())
    assert round(419 * 10 / 60) == 70


def test_state_of_a_model_over_a_link():
    state = 7e9 * (4 + 8)
    assert state == 84e9
    assert f"{state / 25e9:.1f} s" == "3.4 s"
    assert "84 GB, so 3.4 s" in page("4_from_a_peer.rst")


def test_weight_of_a_sample_in_a_mean_of_means():
    assert {1 / 3 / 6, 1 / 3 / 5} == {1 / 18, 1 / 15}


def test_deadline_that_the_page_names():
    assert quorum.SILENT_LOOKS * quorum.BEAT_S == 2
    assert 1 / quorum.BEAT_S == 5
    text = " ".join(page("3_lost_rank.rst").split())
    assert "After ten looks without a new beat, which is two seconds, a rank" in text


def test_timeout_that_is_left_when_no_rank_is_late():
    assert quorum.COLLECTIVE.total_seconds() == 30 * 60
    words = "group's own timeout ends the attempt, here after 30 minutes"
    assert words in " ".join(page("3_lost_rank.rst").split())


def test_first_of_two_proposals_is_what_both_read():
    store = quorum.open_store(2)
    assert store.compare_set("21/quorum", "", "[0, 1]") == b"[0, 1]"
    assert store.compare_set("21/quorum", "", "[1]") == b"[0, 1]"
    other = quorum.Address("127.0.0.1", store.port).connect()
    assert other.compare_set("21/quorum", "", "[1]") == b"[0, 1]"
    assert isinstance(other, dist.TCPStore)


def test_recorded_ranks_end_with_the_same_weights():
    line = r"^Rank (\d): 31 steps, weights (\w+)$"
    for name, ranks in (("23_lost_rank", "023"), ("23_from_a_peer", "0123")):
        ends = dict(re.findall(line, recorded(name), re.M))
        assert "".join(sorted(ends)) == ranks
        assert len(set(ends.values())) == 1
    assert re.search(r"rank 0 takes the state of rank [123]$", recorded(name), re.M)


def test_recorded_kills_repeat_steps_only_with_a_restart():
    row = r"^(a smaller|all ranks)\D+ (\d+) +(\d+) .* ([\d.]+)$"
    rows = re.findall(row, recorded("23_kills"), re.M)
    repeated = {name: int(steps) for name, _, steps, _ in rows}
    assert repeated["a smaller"] == 0
    assert repeated["all ranks"] > 0
    assert {kills for _, kills, _, _ in rows} == {"2"}
    assert len({loss for *_, loss in rows}) == 1
