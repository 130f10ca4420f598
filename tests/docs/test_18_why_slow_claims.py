"""What docs/lessons/18_scaling says of src/instruments/18_why_slow.py, tried out."""

import re
import runpy
import sys

from tests.docs.pages import ROOT, lesson_source

sys.path.insert(0, str(ROOT / "src"))
WHY = runpy.run_path(str(ROOT / "src/instruments/18_why_slow.py"))
PAGE = lesson_source("18_scaling")
PROSE = " ".join(PAGE.split())
TRANSCRIPT = (ROOT / "docs/transcripts/18_why_slow.txt").read_text(encoding="utf-8")


def rank(number, **parts):
    """What a rank measured in ten equal steps; the parts are in ms."""
    step = {part: ms / 1000 for part, ms in parts.items()}
    step["compute cpu"] = step.get("compute", 0)
    found = {"rank": number, "steps": [dict(step) for _ in range(13)]}
    return found | {"on_cpu": True, "threads": 1}


def milliseconds(step):
    return {part: round(1000 * value, 6) for part, value in vars(step).items() if value}


def test_first_paragraph_has_the_recorded_times():
    step = re.search(r"A step takes ([\d.]+) ms", TRANSCRIPT).group(1)
    compute = re.search(r"^  compute +([\d.]+) ms", TRANSCRIPT, re.M).group(1)
    assert f"Two ranks take {step} ms for a step, and only {compute} ms of" in PROSE


def test_answer_of_predict_first():
    """30 and 50 ms alone, 65 ms together: 20 ms of imbalance, 15 ms exposed."""
    silent = [rank(0, compute=30), rank(1, compute=50)]
    real = [rank(0, compute=65), rank(1, compute=65)]
    parts = milliseconds(WHY["split"](real, silent))
    assert parts == {"compute": 30, "imbalance": 20, "communication": 15}
    assert ":answer: 15" in PAGE and "waits 20 ms for rank 1" in PROSE


def test_step_has_the_four_parts_that_the_page_names():
    silent = [rank(0, data=10, compute=30), rank(1, data=10, compute=50)]
    real = [rank(0, data=10, compute=65), rank(1, data=10, compute=65)]
    parts = milliseconds(WHY["split"](real, silent))
    assert set(parts) == {"data", "compute", "imbalance", "communication"}
    assert "four parts: waiting for data, computing, imbalance between the" in PROSE


def test_parts_add_up_to_the_step():
    silent = [rank(0, data=10, compute=4, loop=1), rank(1, data=2, compute=9, loop=3)]
    real = [rank(0, compute=20, data=6, saving=7), rank(1, compute=27, data=6)]
    parts = milliseconds(WHY["split"](real, silent))
    assert sum(parts.values()) == 33
    assert parts["saving"] == 7 and parts["data"] == 2


def test_wait_for_a_core_is_not_computing():
    """Computing for 40 ms with 10 ms of CPU time: 30 ms without a core."""
    slow = rank(0, compute=40)
    for step in slow["steps"]:
        step["compute cpu"] = 0.01
    parts = milliseconds(WHY["split"]([slow, slow], [slow, slow]))
    assert parts == {"compute": 10, "cores": 30}


def test_size_counts_if_a_message_takes_twice_as_long():
    """Below that the number of messages is what costs time."""
    for usual, calls, name in (
        (1.9, 4, "short step"),
        (1.9, 40, "small messages"),
        (2.1, 4, "bandwidth"),
    ):
        measured = rank(0) | {"probe": [1.0, usual]}
        for step in measured["steps"]:
            step |= {"calls": calls, "bytes": calls * 1e6, "backwards": 1}
        assert WHY["name_communication"]([measured])[0] == name
    assert "less than twice as long as a message of one number" in PROSE


def test_share_that_is_worth_naming():
    assert f"at least {100 * WHY['WORTH_NAMING']:.0f} % of a step" in PROSE
