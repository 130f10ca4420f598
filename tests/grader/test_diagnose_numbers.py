"""``workshop diagnose`` on runs without an error: what their numbers show.

Each rule gets a log in another form than the gallery's, and a healthy one like it.
"""

from __future__ import annotations

import sys

import pytest

from tests.grader.test_diagnose import HERE, ROOT, written
from workshop.diagnose import numbers
from workshop.diagnose.causes import MAYBE, SURE, candidates, load
from workshop.diagnose.first import first_failed
from workshop.diagnose.logs import read_logs
from workshop.diagnose.quiet import RULES
from workshop.diagnose.report import diagnose

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOGS = tomllib.loads((HERE / "numbers.toml").read_text(encoding="utf-8"))["log"]
CAUSES = load(ROOT)
HEALTHY = [(entry["cause"], e) for entry in LOGS for e in entry["healthy"].split("---")]
LESSONS = [p for p in (ROOT / "docs/transcripts").glob("*.txt") if p.name[:3] != "19_"]


def found_in(log):
    return candidates(CAUSES, log, first_failed(log))


@pytest.mark.parametrize("entry", LOGS, ids=lambda entry: entry["cause"])
def test_numbers_in_another_form_show_the_cause(entry, tmp_path):
    found = found_in(written(tmp_path, entry["log"]))
    weight = SURE if entry["sure"] else MAYBE
    names = [entry["cause"], *entry.get("beside", [])]
    assert [(each.cause.name, each.weight) for each in found] == [
        (name, weight) for name in names
    ]
    ranks = [rank for each in found if each.suspect for rank in each.suspect.ranks]
    assert ranks == entry.get("suspect", [])


@pytest.mark.parametrize(("like", "text"), HEALTHY)
def test_healthy_log_that_looks_alike_gets_no_cause(like, text, tmp_path):
    assert found_in(written(tmp_path, text)) == []


def test_every_rule_has_a_log_in_another_form():
    assert set(RULES) == {entry["cause"] for entry in LOGS}


def test_numbers_of_the_lessons_runs_show_nothing_wrong():
    assert len(LESSONS) > 100
    wrong = {
        path.name: [each.cause.name for each in found if each.quiet]
        for path in LESSONS
        if (found := found_in(read_logs([str(path)])))
    }
    assert {name: causes for name, causes in wrong.items() if causes} == {}


@pytest.mark.parametrize("entry", LOGS, ids=lambda entry: entry["cause"])
def test_numbers_of_a_run_that_failed_are_not_judged(entry, tmp_path):
    log = written(tmp_path, entry["log"] + "ValueError: label 7\n")
    assert found_in(log) == []


def test_two_files_that_name_their_ranks_once_are_compared(tmp_path):
    """The log of one process beside that of four."""
    names = []
    for ranks, norm in ((4, 9.642), (1, 2.411)):
        text = f"world_size: {ranks}\nstep 1 | loss 8.14 | grad norm {norm}\n"
        names.append(tmp_path / f"{ranks}.log")
        names[-1].write_text(text + "one process saves\n")
    (found,) = found_in(read_logs(map(str, names)))
    assert (found.cause.name, found.weight) == ("forgotten_divide", SURE)
    assert [line.place.partition(":")[0][-5:] for line in found.lines] == [
        "4.log",
        "1.log",
    ]


def test_long_log_is_read_at_its_start_and_at_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(numbers, "MOST", 40)
    between = "".join(f"step {n} loss 4.1\n" for n in range(50))
    for text in (LOGS[0]["log"] + between, between + LOGS[0]["log"]):
        (found,) = found_in(written(tmp_path, text))
        assert found.cause.name == LOGS[0]["cause"]
    first, *rest = LOGS[0]["log"].strip().splitlines()
    half = "\n".join([first, between, *rest[:1], between, "step 1 loss 4.1"])
    assert found_in(written(tmp_path, half)) == []


def test_report_of_numbers_quotes_both_ranks_and_names_the_suspect(tmp_path):
    slow = next(entry for entry in LOGS if entry["cause"] == "slow_steps")
    told, sure = diagnose(written(tmp_path, slow["log"]), ROOT)
    assert told[0] == "No rank reports an error." and not sure
    assert told[1] == "Suspect: rank 2 (the slowest by far in 3 of 3 steps)"
    drift = next(entry for entry in LOGS if entry["cause"] == "drifting_weights")
    told, _ = diagnose(written(tmp_path, drift["log"]), ROOT)
    assert "rank 0: iter 500" in told[3] and "rank 1: iter 500" in told[4]
    assert told[5].startswith("    Ask: Which parameters differ")
