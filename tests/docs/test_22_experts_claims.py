"""What docs/lessons/22_experts says: numbers, formulas, mistakes, torch."""

import math
import re
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.docs.pages import ROOT, checked_page
from tests.in_ranks import assert_right, every_check_in

sys.path.insert(0, str(ROOT / "src"))
from common import mixture as mx
from common.byte_gpt import ByteGPT, Sizes
from common.mixture import Experts, Mixture, MixtureOfExperts

pytestmark = pytest.mark.full

TRANSCRIPTS = ROOT / "docs" / "transcripts"
on_the_page = checked_page("22_experts")


@every_check_in(Path(__file__).resolve().parent / "ranks_22_claims.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


def test_weights_of_deepseek_v3():
    """671 and 37 billion: its technical report, arXiv 2412.19437, abstract."""
    weights = 671 * 2
    on_the_page("has 671 billion parameters, and each token uses 37 billion of them")
    on_the_page(f"take {weights:,} GB in 16 bits")
    on_the_page(f"you need {math.ceil(weights / 80)} GPUs with 80 GB")


def test_two_thirds_of_a_block_are_its_mlp():
    for width in (96, 4096):
        share = (8 * width**2 + 5 * width) / (12 * width**2 + 13 * width)
        assert share == pytest.approx(2 / 3, abs=0.01)
    on_the_page("two thirds of a block's parameters are in its MLP")


def test_an_mlp_eight_times_as_large():
    block = ByteGPT(Sizes()).blocks[0]
    whole = sum(parameter.numel() for parameter in block.parameters())
    mlp = sum(parameter.numel() for parameter in block.mlp.parameters())
    times = (whole + 7 * mlp) / whole
    assert 5.5 < times < 6
    on_the_page("each token needs almost six times as much arithmetic")


def test_recorded_bytes_include_those_of_the_loads():
    """What the page's table adds up to, with the counted tokens: four expert ranks."""
    text = (TRANSCRIPTS / "22_costs.txt").read_text().partition("--expert-ranks")[0]
    sent, tokens = (
        int(re.search(rf"{words} +([\d,]+)", text)[1].replace(",", ""))
        for words in ("sent in a step", "of that for tokens:")
    )
    model = ByteGPT(Sizes())
    mx.replace_mlps(model, Mixture())
    parameters = dict(model.named_parameters())
    others = sum(p.numel() for name, p in parameters.items() if "experts" not in name)
    blocks, experts, ranks = Sizes().blocks, Mixture().experts, 4
    counts = blocks * 8 * experts * (ranks - 1) / ranks
    loads = blocks * 16 * experts * (ranks - 1) / ranks
    gradients = 2 * 4 * others * (ranks - 1) / ranks
    assert sent == tokens + counts + loads + gradients
    on_the_page("loads of the experts, for the balance - :math:`16 E (N - 1) / N`")


def test_most_that_an_expert_can_be_chosen():
    assert Mixture().experts / Mixture().chosen == 4
    on_the_page("With 2 of 8 experts for each token, the most is 4 times the mean")
    text = (TRANSCRIPTS / "22_balance.txt").read_text()
    none, loss, bias = map(float, re.findall(r"chosen ([\d.]+) times", text))
    assert loss < bias < none < 4
    on_the_page(
        "After 100 steps the extra loss has evened the loads more than the bias has"
    )


def test_parameters_of_the_byte_gpt_with_experts(capsys):
    model = ByteGPT(Sizes())
    plain = sum(parameter.numel() for parameter in model.parameters())
    mx.replace_mlps(model, Mixture())
    said = capsys.readouterr().out
    whole, used = (text.strip(",") for text in re.findall(r"[\d,]{7,}", said))
    on_the_page(f"- one MLP - {plain:,} - {plain:,}")
    on_the_page(f"- 8 experts, :math:`k = 2` - {whole} - {used}")
    assert whole.strip(",") in (TRANSCRIPTS / "22_train.txt").read_text()


def test_router_learns_nothing_from_a_gate_divided_by_itself():
    torch.manual_seed(0)
    layer = MixtureOfExperts(4, 6, Mixture(5, 1)).double()
    tokens = torch.randn(7, 4, dtype=torch.float64)
    _, gates, _ = layer.router(tokens)
    outputs = torch.randn(7, 4, dtype=torch.float64)
    weight = layer.router.score.weight
    (normed,) = torch.autograd.grad(
        (gates / gates.sum(1, keepdim=True) * outputs).sum(), weight, retain_graph=True
    )
    (bare,) = torch.autograd.grad((gates * outputs).sum(), weight)
    assert normed.abs().max() < 1e-12 < bare.abs().max()


def test_sum_of_shares_and_chances_grows_if_both_favor_the_same_experts():
    """1/E if one is even, more if both rise together, and less if they oppose."""
    experts = 8
    even = torch.full((experts,), 1 / experts)
    assert (even * even).sum() == pytest.approx(1 / experts)
    torch.manual_seed(0)
    for _ in range(20):
        share = torch.rand(experts).softmax(0).sort().values
        chance = torch.rand(experts).softmax(0).sort().values
        assert (share * even).sum() == pytest.approx(1 / experts)
        assert (share * chance).sum() > 1 / experts
        assert (share * chance.flip(0)).sum() < 1 / experts


def test_page_doesnt_call_the_even_sum_the_smallest():
    text = (ROOT / "docs/lessons/22_experts/2_balance.rst").read_text()
    assert "The sum is smallest" not in text
    assert "larger if the experts that are chosen more often" in " ".join(text.split())


def test_recorded_loads():
    """A loss and a bias both help against a load that is left alone."""
    text = (TRANSCRIPTS / "22_balance.txt").read_text()
    pairs = re.findall(r"chosen ([\d.]+) times the mean, the least busy ([\d.]+)", text)
    left_alone, loss, bias = [tuple(map(float, pair)) for pair in pairs]
    assert left_alone[1] == 0 < min(loss[1], bias[1])
    assert left_alone[0] > bias[0] and left_alone[0] > loss[0]


def test_recorded_steps_take_longer_the_busier_one_rank_is():
    text = (ROOT / "docs/transcripts/22_pace.txt").read_text()
    row = r"^ +([\d.]+) +([\d.]+)$"
    found = [(float(load), float(time)) for load, time in re.findall(row, text, re.M)]
    assert [load for load, _ in found] == [1.0, 1.25, 1.5, 2.0]
    times = [seconds for _, seconds in found]
    assert times == sorted(times) and times[0] == 1.0
    on_the_page(f"Here that took {times[-1]:.1f} times as long")


def test_recorded_losses_are_those_of_one_process():
    text = (TRANSCRIPTS / "22_train.txt").read_text()
    losses = re.findall(r"^Step \d+ \| loss ([\d.]+)$", text, re.M)
    assert len(losses) == 6
    assert losses[:3] == losses[3:]


def test_recorded_costs_are_those_of_the_table():
    text = (TRANSCRIPTS / "22_costs.txt").read_text()
    assert "they differ" not in text
    rows, width, blocks, k = 16 * 64 // 4, 96, 4, 2
    even = re.findall(r"all experts chosen equally: ([\d,]+)", text)
    expected = [16 * k * rows * width * (e - 1) // e * blocks for e in (4, 2)]
    assert [int(number.replace(",", "")) for number in even] == expected
    computed = re.findall(r"experts compute: (.+)", text)
    for line in computed:
        assert sum(map(int, line.split(", "))) == 4 * rows * k * blocks


def test_grouped_product_is_what_the_loop_computes():
    if torch.__version__ < (2, 10):
        return  # its name was another one
    torch.manual_seed(0)
    rows, weights = torch.randn(7, 16), torch.randn(3, 16, 8)
    counts = torch.tensor([4, 0, 3])
    ends = counts.cumsum(0).to(torch.int32)
    grouped = F.grouped_mm(rows, weights, offs=ends)
    parts = rows.split(counts.tolist())
    looped = torch.cat([part @ each for part, each in zip(parts, weights, strict=True)])
    assert torch.allclose(grouped, looped, atol=1e-4)


def trained(kind, scale):
    """The weights after 5 steps whose gradients are multiplied by ``scale``."""
    torch.manual_seed(0)
    experts = Experts(4, 6, 3).double()
    optimizer = kind(experts.parameters(), 0.01)
    for _ in range(5):
        optimizer.zero_grad()
        rows = torch.randn(9, 4, dtype=torch.float64)
        experts(rows, torch.tensor([4, 2, 3])).square().mean().backward()
        for parameter in experts.parameters():
            parameter.grad *= scale
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in experts.parameters()])


def test_adamw_hides_gradients_that_are_too_large():
    kinds = torch.optim.AdamW, torch.optim.SGD
    adamw, sgd = [
        (trained(kind, 4.0) - trained(kind, 1.0)).abs().max() for kind in kinds
    ]
    assert adamw < 1e-3 * sgd
    assert sgd > 1e-4
