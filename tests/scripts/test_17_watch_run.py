"""src/instruments/17_watch_run.py: what it warns of, and when it keeps quiet."""

import dataclasses
import importlib
import itertools
import json
import math
import re
import signal
import sys

import pytest

from tests.launched import finish, start
from tests.scripts.trainings import SRC, script, sentence

watch_run = importlib.import_module("instruments.17_watch_run")
SCRIPT = "17_watch_run.py"


def record(step, **changes):
    """A line of a healthy run of three ranks, or what ``changes`` make of it."""
    healthy = {
        "step": step,
        "time": 1e9 + step,
        "loss": 2.0 - step / 1000,
        "grad_norm": 0.5,
        "samples_per_s": 1000.0,
        "tflops_per_s": 400.0,
        "data_s": [0.001, 0.002, 0.001],
        "own_s": [0.030, 0.032, 0.031],
        "step_s": [0.1, 0.1, 0.1],
        "memory_gb": [10.0, 10.0, 10.0],
    }
    return watch_run.Record(**(healthy | changes))


def kinds(now, lines=12):
    history = [record(10 * number) for number in range(lines)]
    return set(watch_run.problems(history, now, watch_run.Limits()))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, set()),
        ({"loss": math.nan}, {"loss"}),
        ({"loss": math.inf}, {"loss", "spike"}),
        ({"grad_norm": math.inf}, {"loss"}),
        ({"loss": 3.2}, {"spike"}),
        ({"loss": 2.5}, set()),
        ({"grad_norm": 3.0}, {"norm"}),
        ({"samples_per_s": 700.0}, {"speed"}),
        ({"samples_per_s": 900.0}, set()),
        ({"data_s": [0.001, 0.05, 0.001]}, {"data"}),
        ({"own_s": [0.030, 0.030, 0.080]}, {"rank"}),
        # all ranks are slow alike: none of them is behind
        ({"own_s": [0.080, 0.080, 0.080]}, set()),
        (
            {"data_s": [0.06, 0.001, 0.001], "own_s": [0.09, 0.03, 0.03]},
            {"data", "rank"},
        ),
    ],
)
def test_each_problem_is_found_and_nothing_else(changes, found):
    assert kinds(record(200, **changes)) == found


def test_first_lines_are_compared_with_nothing():
    changes = {"loss": 30.0, "samples_per_s": 1.0, "grad_norm": 100.0}
    assert kinds(record(200, **changes), lines=2) == set()
    assert kinds(record(200, **changes), lines=3) == {"spike", "speed", "norm"}


def test_memory_must_grow_in_every_line():
    grown = [record(step, memory_gb=[10 + step, 10, 10]) for step in range(11)]
    limits = watch_run.Limits()
    assert set(watch_run.problems(grown[:10], grown[10], limits)) == {"memory"}
    grown[5] = record(5, memory_gb=[14, 10, 10])  # as much as the line before
    assert watch_run.problems(grown[:10], grown[10], limits) == {}


def test_lines_that_are_not_finite_are_no_measure_for_later_ones():
    history = [record(number, loss=math.nan) for number in range(10)]
    assert watch_run.problems(history, record(11, loss=50.0), watch_run.Limits()) == {}


def test_slowest_rank_is_behind_the_median_of_the_others():
    one = record(1, own_s=[0.01, 0.02, 0.08, 0.03], step_s=[0.1] * 4)
    rank, behind = watch_run.slowest_rank(one)
    assert rank == 2 and behind == pytest.approx(0.6)
    alone = record(1, own_s=[0.08], step_s=[0.1])
    assert watch_run.slowest_rank(alone) == (0, 0.0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2.30449, "2.304"),
        (20371.4, "20371.400"),
        (7.7e15, "7.7e+15"),
        (math.nan, "nan"),
    ],
)
def test_number_fits_its_column(value, shown):
    assert watch_run.short(value) == shown and len(shown) < 10


def write(folder, records, end="\n"):
    text = "\n".join(json.dumps(dataclasses.asdict(one)) for one in records)
    (folder / "run.jsonl").write_text(text + end)


def rows(printed):
    return [int(step) for step in re.findall(r"^ +(\d+) ", printed, re.M)]


def warnings(printed):
    return re.findall(r"^! step (\d+): (.*)", printed, re.M)


@pytest.mark.quick
def test_problem_is_told_once_until_it_is_gone(tmp_path):
    late = {"own_s": [0.03, 0.03, 0.09]}
    steps = {10: {}, 20: late, 30: late, 40: {}, 50: late}
    write(tmp_path, [record(step, **changes) for step, changes in steps.items()])
    done = script(tmp_path, SCRIPT, "run.jsonl", "--peak-tflops", 1000)
    assert done.returncode == 0, done.stderr
    assert rows(done.stdout) == [10, 20, 30, 40, 50]
    told = "rank 2 is slow: 60% of a step behind the others"
    assert warnings(done.stdout) == [("20", told), ("50", told)]
    assert done.stdout.count("40.0%") == 5  # MFU: 400 of 1000 TFLOP/s


def watched(capsys, tmp_path, records, end="\n"):
    """What it prints of a file, in this process."""
    write(tmp_path, records, end)
    watcher = watch_run.Watcher(watch_run.Limits(), None)
    watch_run.watch(tmp_path / "run.jsonl", watcher, follow=False)
    return capsys.readouterr().out


def test_half_a_line_is_left_for_later(capsys, tmp_path):
    printed = watched(capsys, tmp_path, [record(10)], end='\n{"step": 20, "lo')
    assert rows(printed) == [10]


def test_mfu_is_unknown_without_a_peak_or_without_a_count(capsys, tmp_path):
    printed = watched(capsys, tmp_path, [record(10)])
    assert printed.splitlines()[1].split()[4] == "-"
    assert watch_run.row(record(10, tflops_per_s=math.nan), 989).split()[4] == "-"


def test_tokens_have_a_column_where_a_run_counts_them(capsys, tmp_path):
    """A run that begins to count them gets a heading again; older logs lack them."""
    counted = [record(step, tokens_per_s=1_234_567.8) for step in (20, 30)]
    printed = watched(capsys, tmp_path, [record(10), *counted]).splitlines()
    assert [line.split()[:2] for line in printed if "loss" in line] == [
        ["step", "loss"]
    ] * 2
    assert "tokens/s" not in printed[0] and "tokens/s" in printed[2]
    end = printed[2].index("tokens/s") + len("tokens/s")
    for line in printed[3:5]:
        assert line[:end].endswith(" 1,234,568")
    line = dataclasses.asdict(record(10))
    assert line.pop("tokens_per_s") == 0
    assert watch_run.read_record(json.dumps(line), "line 1") == record(10)


def test_resumed_run_is_compared_with_what_led_to_its_snapshot(capsys, tmp_path):
    """Steps 30 to 60 are repeated: the first, bad ones of them don't count."""
    good = [record(step) for step in (10, 20, 30)]
    bad = [record(step, loss=9.0) for step in (40, 50, 60, 70, 80)]
    again = [record(step) for step in (40, 50)]
    after = [record(60, loss=9.0)]
    told = warnings(watched(capsys, tmp_path, [*good, *bad, *again, *after]))
    assert [step for step, _ in told] == ["40", "60"]
    assert told[1][1] == "the loss jumps to 9.000, from about 1.970"


def test_follows_a_run_and_says_when_it_is_silent(tmp_path):
    file = tmp_path / "run.jsonl"
    short_run = [record(step, time=1e9 + step / 1000) for step in range(1, 6)]
    write(tmp_path, short_run)
    process = start(
        tmp_path, [sys.executable, SRC / "instruments" / SCRIPT, file, "--follow"]
    )
    lines = iter(process.stdout.readline, "")
    before = "".join(itertools.islice(lines, 6))  # with the heading
    assert rows(before) == [1, 2, 3, 4, 5]
    silent = next(lines)
    assert re.match(r"! no new line for .* s, usually every 0\.0 s: ended", silent)
    with file.open("a") as opened:
        opened.write(json.dumps(dataclasses.asdict(record(6))) + "\n")
    assert rows(next(lines)) == [6]
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "No longer watching; the run continues"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot read run.jsonl: No such file"),
        ("step 20 | loss 2.2\n", "run.jsonl line 1 is not JSON"),
        ('{"step": 20}\n', "run.jsonl line 1 has no time"),
        ("[1, 2]\n", "run.jsonl line 1 is not JSON with a record"),
    ],
)
def test_another_file_is_refused_in_one_sentence(tmp_path, text, words):
    if text is not None:
        (tmp_path / "run.jsonl").write_text(text)
    said = sentence(script(tmp_path, SCRIPT, "run.jsonl"))
    assert words in said and "--log-file" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", None),
        ("tokens_per_s", None),
        ("step", "20"),
        ("step_s", []),
        ("step_s", [0.1, 0.0]),
        ("data_s", [0.1]),
        ("memory_gb", 3.0),
        ("own_s", [0.1, None]),
    ],
)
def test_number_that_is_none_is_named(tmp_path, name, value):
    """Also a list that lacks a rank: each has an entry in each of the lists."""
    two = {"data_s": [0.1, 0.1], "own_s": [0.1, 0.1], "memory_gb": [1.0, 1.0]}
    sound = dataclasses.asdict(record(20)) | two | {"step_s": [0.2, 0.2]}
    line = json.dumps(sound | {name: value}) + "\n"
    (tmp_path / "run.jsonl").write_text(line)
    said = sentence(script(tmp_path, SCRIPT, "run.jsonl"))
    assert f"run.jsonl line 1: {name} is {value!r}" in said and "--log-file" in said
