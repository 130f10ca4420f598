"""06_compare_snapshots.py: equal, or where not; bad input is one sentence."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from common.snapshot import write_snapshot  # noqa: E402

compare_snapshots = import_module("instruments.06_compare_snapshots")


def snapshot(**changes):
    contents = {
        "model": {"weight": torch.arange(6.0).reshape(2, 3), "bias": torch.zeros(2)},
        "optimizer": {"state": {0: {"momentum": torch.ones(2)}}, "groups": []},
        "epochs_run": 3,
    }
    return contents | changes


def compared(tmp_path, left, right, monkeypatch, capsys):
    """(exit status, what is printed) of comparing two snapshots."""
    for name, contents in (("left.pt", left), ("right.pt", right)):
        write_snapshot(contents, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["06_compare_snapshots.py", "left.pt", "right.pt"])
    status = 0
    try:
        compare_snapshots.main()
    except SystemExit as ended:
        status = ended.code
    return status, capsys.readouterr().out


def test_equal_snapshots_are_equal(tmp_path, monkeypatch, capsys):
    status, text = compared(tmp_path, snapshot(), snapshot(), monkeypatch, capsys)
    assert status == 0
    assert text.endswith("Equal in every bit\n")
    assert text.count("   equal\n") == 3  # model, optimizer, epochs_run


@pytest.mark.parametrize(
    ("changes", "part", "words"),
    [
        ({"epochs_run": 4}, "epochs_run", "3, and 4"),
        ({"model": {"weight": torch.arange(6.0).reshape(2, 3)}}, "model", "one of"),
        (
            {"model": {"weight": torch.arange(6.0), "bias": torch.zeros(2)}},
            "model",
            "another shape",
        ),
        (
            {
                "model": {"weight": torch.arange(6.0).reshape(2, 3) + 1e-6}
                | {"bias": torch.zeros(2)}
            },
            "model",
            "differ, by at most 1.0e-06",
        ),
        ({"optimizer": {"state": {}, "groups": []}}, "optimizer", "one of them only"),
        ({"extra": 1}, "extra", "one of them only"),
    ],
    ids=["value", "missing", "shape", "number", "state", "part"],
)
def test_a_difference_is_named(changes, part, words, tmp_path, monkeypatch, capsys):
    right = snapshot(**changes)
    status, text = compared(tmp_path, snapshot(), right, monkeypatch, capsys)
    assert status == 1
    assert text.endswith("Not equal\n")
    (line,) = [line for line in text.splitlines() if line.startswith(part)]
    assert words in line
    others = [n for n in ("model", "optimizer", "epochs_run") if n != part]
    assert text.count("   equal\n") == len(others)


def test_one_bit_is_a_difference(tmp_path, monkeypatch, capsys):
    """0.0 and -0.0 are equal numbers, and not equal bits."""
    bias = torch.tensor([0.0, -0.0])
    right = snapshot(model=snapshot()["model"] | {"bias": bias})
    status, text = compared(tmp_path, snapshot(), right, monkeypatch, capsys)
    assert status == 1
    assert "1 differ" in text


def test_the_same_nan_is_equal(tmp_path, monkeypatch, capsys):
    nan = snapshot(model={"weight": torch.tensor([float("nan"), 1.0])})
    status, _ = compared(tmp_path, nan, nan, monkeypatch, capsys)
    assert status == 0


def test_a_missing_file_is_one_sentence(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "src/instruments/06_compare_snapshots.py",
            "a.pt",
            "b.pt",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "a.pt" in done.stderr
