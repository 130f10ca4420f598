"""18_roofline.py: what it counts, and that its table follows from its rates."""

import re
import sys
from importlib import import_module

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.launched import run
from tests.scripts.trainings import SRC

roofline = import_module("instruments.18_roofline")


def test_intensity_is_counted_flops_over_the_bytes_of_three_tensors():
    for rows, width in ((1, 64), (7, 32)):
        x, weight = torch.ones(rows, width), torch.ones(width, width)
        with FlopCounterMode(display=False) as counter:
            y = x @ weight
        moved = x.nbytes + weight.nbytes + y.nbytes
        expected = counter.get_total_flops() / moved
        assert roofline.intensity(rows, width) == pytest.approx(expected)


def test_the_first_repeat_is_not_measured(monkeypatch):
    clock = iter([0, 100, 200, 202, 300, 304, 400, 401])
    monkeypatch.setattr(roofline.time, "perf_counter", lambda: next(clock))
    assert roofline.rate(8, lambda: None, repeats=3) == 4  # 8 in the median of 2, 4, 1


def test_the_roof_is_the_lower_of_both_limits(tmp_path):
    done = run(
        tmp_path, [sys.executable, SRC / "instruments/18_roofline.py", "--width", "64"]
    )
    assert done.returncode == 0, done.stderr
    limits = re.search(r"([\d.]+) GFLOP/s, ([\d.]+) GB/s", done.stdout)
    peak, memory = map(float, limits.groups())
    numbers = re.findall(r"^ *(\d+) +([\d.]+) +([\d.]+) +([\d.]+)$", done.stdout, re.M)
    assert [int(row[0]) for row in numbers] == roofline.ROWS
    for rows, intensity, roof, _ in numbers:
        assert float(intensity) == pytest.approx(
            roofline.intensity(int(rows), 64), abs=0.006
        )
        lower = min(peak, float(intensity) * memory)
        assert float(roof) == pytest.approx(lower, rel=0.05, abs=0.1)


def test_the_peak_is_that_of_a_product_of_its_own(monkeypatch, capsys):
    """Not the best row of the table, which would then always reach its roof."""
    speeds = {512: 3e9}
    monkeypatch.setattr(roofline, "linear", lambda _, rows, *__: speeds.get(rows, 1e9))
    monkeypatch.setattr(sys, "argv", ["18_roofline.py", "--width", "64"])
    roofline.main()
    assert capsys.readouterr().out.startswith("cpu: 3.0 GFLOP/s")


# 300 TB are more than is addressed; the last one is more than 64 bits hold
@pytest.mark.parametrize("width", ["-1", "5000000", "5" + "0" * 21])
def test_bad_width_is_one_sentence(width, tmp_path):
    done = run(
        tmp_path, [sys.executable, SRC / "instruments/18_roofline.py", "--width", width]
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "--width" in done.stderr
