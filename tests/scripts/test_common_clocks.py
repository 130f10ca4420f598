"""Clocks stop when the device has done what was queued, not when it was queued."""

import runpy
import types
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

from common.parallel import model_parallel

SRC = Path(__file__).resolve().parents[2] / "src"


def test_rate_is_taken_when_the_devices_are_done(monkeypatch):
    seen = []
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda d: seen.append("done"))
    now = lambda: seen.append("clock") or len(seen)  # noqa: E731
    monkeypatch.setattr(model_parallel, "time", types.SimpleNamespace(perf_counter=now))
    optimizer = model_parallel.make_optimizer(torch.nn.Linear(2, 2, device="meta"), 0.1)
    loader = DataLoader(TensorDataset(torch.zeros(2, 2), torch.zeros(2)), 2)
    model_parallel.train(lambda images, labels: 0.0, optimizer, loader, 1)
    assert seen == ["clock", "done", "clock"]


def test_timeline_reads_the_devices_clock_when_it_is_done(monkeypatch):
    seen = []

    class Event:
        def __init__(self, device, enable_timing):
            assert (device.type, enable_timing) == ("meta", True)

        def record(self):
            seen.append("recorded")

        def elapsed_time(self, other):
            seen.append("read")
            return 2.0

    monkeypatch.setattr(torch, "Event", Event)
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda d: seen.append("done"))
    program = runpy.run_path(str(SRC / "instruments/05_timeline.py"))
    timeline = program["Timeline"](torch.device("meta"))
    timeline.note("step")
    assert timeline.events() == [(2.0, "step")]
    assert seen == ["recorded", "recorded", "done", "read"]
