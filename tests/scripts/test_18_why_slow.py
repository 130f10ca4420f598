"""src/instruments/18_why_slow.py: what it makes of measured runs, and its errors."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from tests import launched
from tests.scripts.slow_runs import HEALTHY, KEPT, PROGRAM, REASONS, STEPS

RUNS = json.loads(KEPT.read_text())
SLOW = Path(__file__).with_name("slow_run.py")
TWO_RANKS = [*launched.STANDALONE, "--nproc-per-node=2"]


def why(folder, *command):
    program = [sys.executable, PROGRAM, "--steps", STEPS, "--", *command]
    return launched.run(folder, program)


def shares(printed):
    """Percent of a step by part, as printed."""
    found = re.findall(r"^  (\S.*?) +([\d.]+) ms +(\d+)%$", printed, re.M)
    return {part: int(percent) for part, _, percent in found}


@pytest.fixture
def told(capsys):
    """``told(reason)``: what the program prints of the runs that were kept."""

    def told(reason):
        program, runs = runpy.run_path(str(PROGRAM)), iter(RUNS[reason])
        program["diagnose"].__globals__["run"] = lambda *_, **__: next(runs)
        program["report"](*program["diagnose"]([], STEPS))
        assert next(runs, None) is None, "it didn't ask for all runs"
        return capsys.readouterr().out

    return told


@pytest.mark.parametrize("reason", REASONS)
def test_names_the_reason_and_its_cure(reason, told):
    name, words = REASONS[reason]
    last = told(reason).splitlines()[-1]
    assert last.startswith(f"Largest loss: {name}, ") and words in last


def test_healthy_run_is_called_healthy(told):
    printed = told(HEALTHY)
    last = printed.splitlines()[-1]
    assert last.startswith("Healthy") and "The largest: " in last, printed
    found = shares(printed)
    assert max(found, key=found.get) == "compute"


@pytest.mark.parametrize(
    ("reason", "words"),
    [("data", r"9\d% of a step waits for data: the loop waits for the next batch"),
     ("bandwidth", r"\d% of a step waits for data: trace it, lesson 17$")],
)  # fmt: skip
def test_waiting_for_data_is_named_where_no_message_is_seen(told, reason, words):
    """As with DTensor: the second run is no different from the first."""
    real = RUNS[reason][0]
    steps = [{k: v for k, v in s.items() if k != "calls"} for s in real[0]["steps"]]
    RUNS["unseen"] = [real, [rank | {"steps": steps} for rank in real]]
    with pytest.raises(Exception, match=r"^no message was seen .*; " + words) as said:
        told("unseen")
    assert type(said.value).__name__ == "BadInput"


def test_folder_that_cannot_be_written_is_one_sentence():
    """In /proc no file can be made, not even by root."""
    done = why("/proc", "true")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "cannot start true: " in done.stderr and "./why_slow_" in done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["14_tensor_parallel.py", "13_pipeline.py"])
def test_run_without_a_call_that_it_knows_gets_no_verdict(tmp_path, name):
    done = why(tmp_path, *TWO_RANKS, PROGRAM.parents[1] / name, 60)
    assert done.returncode == 2
    assert "no message was seen (DTensor? pipeline?)" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "Healthy" not in done.stdout and "loss" not in done.stdout


@pytest.mark.parametrize(
    ("launcher", "name"),
    [
        ([sys.executable], "01_single_device.py"),
        pytest.param(
            [*launched.STANDALONE, "--nproc-per-node=1"],
            "07_torchrun.py",
            marks=pytest.mark.full,
        ),
    ],
)
def test_one_process_has_nothing_to_compare(tmp_path, launcher, name):
    done = why(tmp_path, *launcher, PROGRAM.parents[1] / name, 3, 3)
    assert done.returncode == 2
    words = (
        "one process communicates nothing: start more, or profile it as in lesson 01"
    )
    assert done.stderr == f"18_why_slow.py: error: {words}\n"


@pytest.mark.nightly
def test_calls_of_fsdp_are_counted_and_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = [*TWO_RANKS, PROGRAM.parents[1] / "15_fsdp.py", "60"]
    run = runpy.run_path(str(PROGRAM))["run"]
    for rank in run([str(word) for word in command], STEPS, silent=True):
        for step in rank["steps"][3:]:
            assert step["calls"] > 10 and step["bytes"] > 1e6
            assert not step.get("communication"), "a call was not left out"


@pytest.mark.full
def test_measures_a_run_and_leaves_nothing_behind(tmp_path):
    done = why(tmp_path, *TWO_RANKS, SLOW, HEALTHY)
    assert done.returncode == 0, done.stderr
    assert f"{STEPS} steps measured" in done.stdout
    assert 97 <= sum(shares(done.stdout).values()) <= 103, done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], "no command is given"),
        (["no-such-program"], "cannot start no-such-program"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "ended with status 3"),
        ([sys.executable, "-c", "pass"], "must take 8 steps in a group"),
    ],
)
def test_bad_input_is_one_sentence(command, words, tmp_path):
    done = why(tmp_path, *command)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_cures_name_lessons():
    """Each loss has a cure, and each cure a page."""
    cures = runpy.run_path(str(PROGRAM))["CURES"]
    assert set(cures) == {name for name, _ in REASONS.values()}
    for words in cures.values():
        assert re.search(r"[Ll]esson \d\d", words), words


def test_silent_run_replaces_no_snapshot(tmp_path):
    """Weights that no rank has averaged must not replace what the reader trained."""
    (tmp_path / "snapshot.pt").write_text("mine")
    (tmp_path / "plan.json").write_text('{"steps": 3, "silent": true}')
    watch = PROGRAM.parents[1] / "common" / "cost" / "step_watch.py"
    (tmp_path / "sitecustomize.py").write_bytes(watch.read_bytes())
    program = (
        "import os, torch\n"
        "torch.save({}, 'unfinished.pt')\n"
        "os.replace('unfinished.pt', 'snapshot.pt')\n"
        "os.replace('plan.json', 'other.json')\n"
    )
    command = [sys.executable, "-c", program]
    done = launched.run(tmp_path, command, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "snapshot.pt").read_text() == "mine"
    assert (tmp_path / "other.json").exists(), "what isn't saved by torch is renamed"
