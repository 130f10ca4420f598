"""The page "Watch a run": what it says about logs, clocks and TensorBoard."""

import json
import re
import runpy
import sys
import types

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "production" / "watch_a_run.rst").read_text(encoding="utf-8")
TRANSCRIPTS = ROOT / "docs" / "transcripts"


def recorded(name):
    return (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")


def test_hours_lost_at_ten_percent_on_512_gpus():
    assert "512 GPUs becomes 10 % slower" in PAGE and "1,200 GPU-hours" in PAGE
    assert 1200 < 512 * 24 * 0.1 < 1250


def test_slow_rank_stands_in_every_row_and_is_told_once():
    rows = re.findall(r"^ +\d+ .* (\d), by \d+%$", recorded("watch_slow_rank"), re.M)
    assert len(rows) == 6 and set(rows) == {"2"}
    assert recorded("watch_slow_rank").count("rank 2 is slow") == 1


def test_gradient_norm_jumps_with_the_loss():
    text = recorded("watch_spike")
    assert "! step 70: the loss jumps to" in text
    assert "! step 70: the gradient norm is" in text
    assert "! step 60" not in text


def test_speed_falls_for_four_rows_and_the_loss_stays_high():
    row = r"^ +(\d+) +([\d.]+) +[\d.]+ +(\d+) +- "
    table = re.findall(row, recorded("watch_spike"), re.M)
    loss = {int(step): float(value) for step, value, _ in table}
    speed = {int(step): int(value) for step, _, value in table}
    slow = [step for step, value in speed.items() if value < 0.8 * 622]
    assert slow == [70, 80, 90, 100] and max(speed) == 120
    assert all((loss[step] > 100) == (step >= 70) for step in loss)
    said = "only in rows 70 to 100, while the loss stays high to the end"
    assert said in " ".join(PAGE.split())
    late = re.findall(r"step (\d+): rank 0 is slow", recorded("watch_spike"))
    assert late == ["100"] and "as in row 100" in PAGE


def test_mfu_needs_the_peak_of_the_device():
    program = (ROOT / "src/instruments/17_watch_run.py").read_text(encoding="utf-8")
    assert 'add("--peak-tflops"' in program and "``--peak-tflops 989``" in PAGE
    assert re.search(r"^ +10 .* - ", recorded("watch_spike"), re.M)  # without it


def test_clipping_returns_the_norm_before_it():
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    assert torch.nn.utils.clip_grad_norm_([weight], 1.0) == 5.0
    assert weight.grad.norm() == pytest.approx(1.0)


def test_operations_are_counted_with_the_counter_that_the_page_names():
    """2 operations for each weight and sample in forward, and as many in backward."""
    with FlopCounterMode(display=False) as counter:
        torch.nn.Linear(32, 128)(torch.randn(8, 32)).sum().backward()
    assert "FlopCounterMode" in PAGE
    assert counter.get_total_flops() == 2 * (2 * 32 * 128 * 8)


def test_nan_is_repaired_by_no_later_step():
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.AdamW([weight], 0.1)
    for gradient in (torch.nan, 1.0, 1.0):
        weight.grad = torch.tensor([gradient])
        optimizer.step()
        assert weight.isnan().all()


class Writer:
    """What is asked of TensorBoard's SummaryWriter."""

    def __init__(self, folder):
        self.folder, self.written = folder, []
        made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def add_scalar(self, name, value, step, walltime):
        self.written.append((name, value, step, walltime))


made: list[Writer] = []


def test_log_becomes_curves_of_tensorboard(tmp_path, monkeypatch):
    """Each number of a line, and of a list the largest, at its step and time."""
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    lines = [
        {"step": step, "time": 1e9 + step, "loss": 2.0, "own_s": [0.1, 0.4, 0.2]}
        for step in (10, 20)
    ]
    log = tmp_path / "run.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(sys, "argv", ["to_tensorboard.py", str(log), "runs/first"])
    runpy.run_path(str(ROOT / "docs" / "examples" / "to_tensorboard.py"))
    (writer,) = made
    assert writer.folder == "runs/first"
    assert writer.written == [
        (name, value, step, 1e9 + step)
        for step in (10, 20)
        for name, value in (("loss", 2.0), ("largest/own_s", 0.4))
    ]
