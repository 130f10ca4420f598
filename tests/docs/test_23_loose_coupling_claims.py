"""What docs/lessons/23_loose_coupling says: numbers, formulas, mistakes, torch."""

import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed.algorithms.model_averaging import averagers, utils

from tests.docs.pages import ROOT, checked_page
from tests.in_ranks import assert_right, every_check_in

sys.path.insert(0, str(ROOT / "src"))
from common.byte_gpt import Sizes
from common.cost.counting import model_parameters
from common.local_steps import OuterRule

pytestmark = pytest.mark.full

TRANSCRIPTS = ROOT / "docs" / "transcripts"
on_the_page = checked_page("23_loose_coupling")


@every_check_in(Path(__file__).resolve().parent / "ranks_23_claims.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


def seconds(parameters, size, every, bits_per_s):
    """Of an all-reduce between two: each sends 2 (N-1)/N = 1 times the bytes."""
    return 8 * parameters * size / every / bits_per_s


@pytest.mark.parametrize(
    ("row", "size", "every"),
    [
        ("16-bit gradients in each step", 2, 1),
        ("32-bit parameters once in 100 steps", 4, 100),
        ("32-bit parameters once in 500 steps", 4, 500),
    ],
)
def test_seconds_of_the_link(row, size, every):
    times = [seconds(1e9, size, every, rate) for rate in (100e9, 1e9, 200e6)]
    on_the_page(f"- {row} - " + " - ".join(f"{time:g}" for time in times))
    if every == 1:
        on_the_page(f"DDP waits {times[1]:g} s for this link in every step")


def test_defaults_are_those_of_diloco():
    """arXiv 2311.08105, section 3: outer learning rate 0.7, Nesterov momentum 0.9."""
    rule = OuterRule()
    on_the_page(rf"takes :math:`\eta = {rule.learning_rate}`")
    on_the_page(rf"and :math:`\mu = {rule.momentum}`")


def test_recorded_bytes_are_those_of_the_formula():
    text = (TRANSCRIPTS / "23_train.txt").read_text()
    sent = re.findall(r"for the model: ([\d,]+) bytes per step", text)
    parameters, world_size = model_parameters(Sizes()), 4
    expected = [
        8 * parameters * (world_size - 1) / world_size / every for every in (20, 20)
    ]
    assert [int(one.replace(",", "")) for one in sent] == list(map(round, expected))


def test_averager_sends_in_the_first_of_20_calls_and_only_what_has_a_gradient(
    monkeypatch,
):
    sent = []
    for name, stand_in in {
        "all_reduce": lambda flat, group: sent.append(flat.numel()),
        "get_world_size": lambda group: 2,
        "_rank_not_in_group": lambda group: False,
    }.items():
        monkeypatch.setattr(utils.dist, name, stand_in)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 5))
    model[2].requires_grad_(False)
    model(torch.randn(6, 3)).sum().backward()
    averager = averagers.PeriodicModelAverager(20, process_group=object())
    for _ in range(41):
        averager.average_parameters(model.parameters())
    of_trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert sent == 3 * [of_trained]
    on_the_page("In the first of every 20, it replaces the parameters by their mean")
    on_the_page("It averages the parameters that have a gradient, and no buffers")


def test_recorded_runs_learn():
    text = (TRANSCRIPTS / "23_train.txt").read_text()
    tested = [float(loss) for loss in re.findall(r"^Test loss ([\d.]+)", text, re.M)]
    outer, mean = tested
    assert mean < outer < 3.14
    on_the_page("Here the plain mean ends a little lower. Five outer steps are few")


def test_recorded_number_of_local_steps_costs_what_the_page_says():
    text = (TRANSCRIPTS / "23_local_steps.txt").read_text()
    every = [int(steps) for steps in re.findall(r"^K = (\d+)$", text, re.M)]
    sent = re.findall(r"for the model: ([\d,]+) bytes per step", text)
    sent = [int(count.replace(",", "")) for count in sent]
    lost = [float(loss) for loss in re.findall(r"^Test loss ([\d.]+)", text, re.M)]
    assert every == [1, 5, 20, 50] and sent == [round(sent[0] / k) for k in every]
    assert lost == sorted(lost)
    on_the_page("sends a fiftieth of the bytes")
    on_the_page(f"the loss is {lost[3] - lost[0]:.2f} higher after as many steps")
    on_the_page(f"from 1 to 20 costs {lost[2] - lost[0]:.2f}")
    on_the_page(f"from 20 to 50 another {lost[3] - lost[2]:.2f}")


def test_recorded_delay_costs_what_the_page_says():
    """The same run as the second of 23_train, with messages under way for 5 steps."""

    def tested(name):
        text = (TRANSCRIPTS / f"{name}.txt").read_text()
        return [float(loss) for loss in re.findall(r"^Test loss ([\d.]+)", text, re.M)]

    without = tested("23_train")[1]
    nothing_kept, half_kept = tested("23_delay")
    on_the_page(f"Without a delay, the test loss was {without:.4f}.")
    assert {round(nothing_kept, 2), round(half_kept, 2)} == {2.65}
    assert round(nothing_kept - without, 2) == round(half_kept - without, 2) == 0.03
    assert round(half_kept - nothing_kept, 3) == 0.003
    on_the_page(r"it's 2.65 for either :math:`\alpha`: 0.03 more")
    on_the_page("differ by 0.003, which single runs can't tell apart")


def test_the_slow_link_is_described_as_recorded():
    path = ROOT / "docs" / "transcripts" / "23_slow_link.txt"
    row = re.compile(
        r"^(DDP|K = 20(?:, \w+)?) +([\d,]+) +[\d,]+ +([\d.]+)"
        r" +(\d+) +([\d.]+) +([\d.]+)$",
        re.M,
    )
    found = {
        name: [float(number.replace(",", "")) for number in numbers]
        for name, *numbers in row.findall(path.read_text(encoding="utf-8"))
    }
    sent, step, steps, seconds, loss = found["DDP"]
    assert round(sent / 25e6 * 1000, -1) == 80  # ms at 200 Mbit/s
    for name in ("K = 20", "K = 20, mean", "K = 20, int8"):
        _, other_step, other_steps, other_seconds, _ = found[name]
        assert 0.2 < other_step / step < 0.3, "a quarter"
        assert other_seconds < seconds / 3
        assert steps <= other_steps <= steps * 4 / 3 + 1e-9
    assert round(found["K = 20, mean"][-1] - loss, 2) == 0.04
    assert round(found["K = 20"][-1] - loss, 2) == 0.16
