"""``workshop diagnose`` on the flight recorder's files.

The folder recorder holds dumps of real runs on gloo (torch 2.13), written by
src/instruments/19_flight_recorder.py: gallery/another_order.py, only_rank_0_reduces.py,
unequal_batches.py, a rank that leaves its loop early, and integers among floats.
"""

from __future__ import annotations

import os
import pickle

import pytest

from tests.grader.small_house import workshop
from tests.grader.test_diagnose import HERE, ROOT
from workshop.diagnose.logs import read_logs
from workshop.diagnose.recorder import compare, read_record
from workshop.diagnose.report import diagnose

DUMPS = HERE.parent / "recorder"
DIFFERENCES = {
    "another_order": ("collective_mismatch", (), "rank 0 called gloo:broadcast"),
    "only_rank_0_reduces": ("collective_mismatch", (), "rank 1 called gloo:barrier"),
    "unequal_batches": ("collective_mismatch", (), "collective 8 of group 0"),
    "left_early": ("absent_rank", (2,), "collective 3 of group 0 (default_pg): rank 2"),
    "dtypes": ("other_sizes", (), "[[4]] Int at dtypes.py:9"),
}


def test_every_recorded_folder_is_tested():
    assert set(DIFFERENCES) == {path.name for path in DUMPS.iterdir()}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_first_difference_of_the_ranks_is_named_with_its_line(name):
    cause, ranks, words = DIFFERENCES[name]
    found = compare(read_logs([str(DUMPS / name)]).records)
    assert (found.cause, found.first.ranks) == (cause, ranks)
    assert any(words in line for line in found.lines)
    told, sure = diagnose(read_logs([str(DUMPS / name)]), ROOT)
    assert sure and any(words in line for line in told)


def test_command_reads_a_folder_and_single_files():
    result = workshop(ROOT, "diagnose", str(DUMPS / "left_early"))
    assert result.returncode == 0 and "First to fail: rank 2" in result.stdout
    files = [str(DUMPS / f"left_early/nccl_trace_rank_{rank}") for rank in (0, 1)]
    result = workshop(ROOT, "diagnose", *files)
    assert result.returncode == 1
    assert result.stdout.startswith("No file of rank 2")
    assert "ranks 0 and 1 don't differ" in result.stdout


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harmed",)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"entries": [x]}])
def test_pickle_that_would_run_something_is_refused(tmp_path, monkeypatch, wrap):
    monkeypatch.chdir(tmp_path)
    content = pickle.dumps(wrap(Harmful()))
    assert read_record(content) is None
    assert not (tmp_path / "harmed").exists()
    (tmp_path / "trace_0").write_bytes(content)
    result = workshop(ROOT, "diagnose", str(tmp_path / "trace_0"))
    assert result.returncode != 0 and not (tmp_path / "harmed").exists()


@pytest.mark.parametrize("value", [{}, [], {"entries": 3}, {"entries": [{}]}, "text"])
def test_pickle_of_something_else_is_no_record(value):
    assert read_record(pickle.dumps(value)) is None


def test_cut_file_is_no_record():
    content = (DUMPS / "dtypes/nccl_trace_rank_0").read_bytes()
    assert read_record(content[: len(content) // 2]) is None


def changed(entry_of, **values):
    """The records of two ranks of one run, with something else for rank 1."""
    records = {}
    for rank in (0, 1):
        path = DUMPS / f"dtypes/nccl_trace_rank_{rank}"
        dump = pickle.loads(path.read_bytes())
        for entry in dump["entries"]:
            entry["input_dtypes"] = ["Float"]
        if rank == 1:
            dump["entries"][entry_of] |= values
        records[rank] = read_record(pickle.dumps(dump))
    return compare(records)


def test_other_sizes_differ_and_those_of_an_all_to_all_may():
    assert changed(1) is None
    assert changed(1, input_sizes=[[5]]).cause == "other_sizes"
    name = "nccl:all_to_all"
    records = {0: [[4]], 1: [[5]]}
    both = {}
    for rank, sizes in records.items():
        dump = pickle.loads((DUMPS / "dtypes/nccl_trace_rank_0").read_bytes())
        dump["entries"][1] |= {"profiling_name": name, "input_sizes": sizes}
        both[rank] = read_record(pickle.dumps(dump))
    assert compare(both) is None
