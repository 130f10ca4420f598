"""What docs/lessons/17_speed says about traces and slow ranks, tried out.

That the parts of a trace and the diagnosis are right is in
tests/scripts/test_17_profile.py and test_17_straggler.py.
"""

import inspect
import json
import re
from pathlib import Path

import pytest

from tests.docs.pages import lesson_source

DOCS = Path(__file__).resolve().parents[2] / "docs"


def recorded(name):
    return (DOCS / "transcripts" / f"{name}.txt").read_text(encoding="utf-8")


def rows(text):
    """The numbers of each line that begins with a rank."""
    lines = re.findall(r"^(?:rank +| +)(\d)((?: +\d+\.\d)+)$", text, re.M)
    return {int(rank): [float(n) for n in numbers.split()] for rank, numbers in lines}


def test_step_of_82_ms_of_which_65_read_a_batch():
    steps, _compute, data, *_ = rows(recorded("17_profile"))[0]
    assert round(steps / 5) == 82 and round(data / 5) == 65
    assert "17_profile.py --data-ms 60 2" in recorded("17_profile")


def test_parts_of_a_row_are_its_steps():
    for steps, *parts in rows(recorded("17_profile")).values():
        assert abs(steps - sum(parts)) < 0.3
    events = re.search(r"trace.json: (\d+) events", recorded("17_profile"))
    assert round(int(events[1]), -2) == 4500


def test_idle_is_the_mean_of_other_and_imbalance_is_of_compute():
    table, text = rows(recorded("17_profile")), recorded("17_profile")
    other = sum(row[-1] for row in table.values()) / len(table)
    assert abs(float(re.search(r"idle ([\d.]+)", text)[1]) - other) < 0.1
    compute = [row[1] for row in table.values()]
    mean = sum(compute) / len(compute)
    assert f"computes {max(compute) / mean - 1:.0%} above the mean" in text
    page = " ".join(lesson_source("17_speed").split())
    assert f"here {max(compute)} ms against {mean:.1f}." in page


def test_others_wait_110_ms_and_the_late_rank_15():
    table = rows(recorded("17_straggler"))
    waiting = {rank: row[-1] for rank, row in table.items()}
    assert len(table) == 4 and round(waiting.pop(2)) == 15
    assert all(100 < ms < 120 for ms in waiting.values())


def test_answers_say_what_the_waiting_ranks_lose():
    """All but one of 4 and of 1,024 ranks wait for 100 ms."""
    page = " ".join(lesson_source("17_speed").split())
    assert f":answer: {(4 - 1) * 100}" in page
    assert f"Three ranks wait 100 ms each, so {(4 - 1) * 100} ms." in page
    assert f"With 1,024 ranks it would be {(1024 - 1) * 0.1:.0f} seconds" in page


def test_all_ranks_wait_equally_for_a_slow_link():
    text = recorded("17_slow_link")
    waiting = [row[-1] for row in rows(text).values()]
    assert max(waiting) < 1.1 * min(waiting)
    assert "Links: slow to rank 2 on n3; round trips take 0.3 to 41.1 ms" in text
    assert "delay 20ms n3" in text


def test_figure_shows_what_its_text_says():
    """66 and 143 ms, 117 and 135 ms; one bucket hidden, one exposed."""
    saved = json.loads((DOCS / "figures" / "17_trace.json").read_text("utf-8"))
    early, late = saved["ranks"]
    first, second = late["all_reduce"]
    assert [round(rank["operators"][0][1]) for rank in (early, late)] == [66, 143]
    assert [round(first[0]), round(second[0])] == [117, 135]
    assert all(early["all_reduce"][n][0] < late["all_reduce"][n][0] for n in (0, 1))
    assert first[1] < 143 < second[1]


@pytest.mark.parametrize(
    ("file", "slowed_by"),
    [("17_1", "delay 20ms n3"), ("17_2", "--slow-rank 1"), ("17_3", "--data-ms 120")],
)
def test_no_collectives_of_a_recorded_trace_overlap(file, slowed_by):
    """As exercises/17_three_traces.py says; the command is in the file."""
    path = DOCS / "traces" / f"{file}.json"
    trace = json.loads(path.read_text("utf-8"))
    assert slowed_by in " ".join(trace["recorded"]["commands"])
    calls = [e for e in trace["traceEvents"] if e["name"][:5] == "gloo:"]
    for rank in range(trace["mergedRanks"]):
        first, second = [(e["ts"], e["dur"]) for e in calls if e["pid"] == rank]
        assert sum(first) < second[0]


def test_memory_snapshot_exists_and_the_timeline_is_deprecated():
    """The page of PyTorch that the link names describes the first two."""
    import torch.cuda.memory
    from torch.profiler import profile

    inspect.signature(torch.cuda.memory._record_memory_history).bind()
    inspect.signature(torch.cuda.memory._dump_snapshot).bind("rank0.pickle")
    deprecated = getattr(profile.export_memory_timeline, "__deprecated__", "")
    assert "_record_memory_history" in deprecated
