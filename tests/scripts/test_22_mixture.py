"""The mixture of experts of one process: choices, capacity, gates, balance."""

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
from common import mixture as mx
from common.byte_gpt import ByteGPT, Sizes
from common.mixture import Mixture, MixtureOfExperts

pytestmark = pytest.mark.full


def layer_of(seed=0, width=6, hidden=10, **options):
    torch.manual_seed(seed)
    return MixtureOfExperts(width, hidden, Mixture(**options)).double()


def token_by_token(layer, tokens, kept):
    """Each kept choice of each token on its own; ``kept`` is a set of pairs."""
    chosen, gates, _ = layer.router(tokens)
    outputs = []
    for row, token in enumerate(tokens):
        total = torch.zeros_like(token)
        for choice, expert in enumerate(chosen[row].tolist()):
            if (row, choice) not in kept:
                continue
            own = layer.experts
            hidden = F.gelu(token @ own.up[expert] + own.up_bias[expert])
            computed = hidden @ own.down[expert] + own.down_bias[expert]
            total = total + gates[row, choice] * computed
        outputs.append(total)
    return torch.stack(outputs)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_layer_equals_tokens_one_after_the_other(k):
    layer = layer_of(experts=5, chosen=k)
    tokens = torch.randn(7, 6, dtype=torch.float64)
    every = {(row, choice) for row in range(7) for choice in range(k)}
    right = token_by_token(layer, tokens, every)
    out = layer(tokens.view(1, 7, 6)).view(7, 6)
    assert torch.allclose(out, right, atol=1e-12, rtol=0)
    grad_out = torch.randn_like(out)
    parameters = list(layer.parameters())
    found = torch.autograd.grad(out, parameters, grad_out, retain_graph=True)
    expected = torch.autograd.grad(right, parameters, grad_out, allow_unused=True)
    for own, of_reference in zip(found, expected, strict=True):
        assert torch.allclose(own, of_reference, atol=1e-12, rtol=0)


def test_of_equal_scores_the_first_wins():
    scores = torch.tensor([[1.0, 3.0, 3.0, 3.0], [2.0, 2.0, 2.0, 2.0]])
    assert mx.top_k(scores, 2).tolist() == [[1, 2], [0, 1]]
    many = torch.zeros(1, 1000)
    assert mx.top_k(many, 3).tolist() == [[0, 1, 2]]


def test_first_choices_go_before_second_ones():
    chosen = torch.tensor([[0, 1], [0, 1], [1, 0], [0, 1]])
    kept = mx.within_capacity(chosen, 3, 2)
    # Expert 0: tokens 0 and 1. Expert 1: token 2's first choice, then token 0's second.
    right = [[True, True], [True, False], [True, False], [False, False]]
    assert kept.tolist() == right


def test_dropped_choices_add_nothing():
    layer = layer_of(experts=4, chosen=2, capacity_factor=1.0)
    with torch.no_grad():
        layer.router.bias[0] = 10.0  # every token's first choice
    tokens = torch.randn(8, 6, dtype=torch.float64)
    out = layer(tokens)
    chosen, _, _ = layer.router(tokens)
    capacity = 4  # 1.0 x 8 x 2 / 4
    kept_rows = mx.within_capacity(chosen, 4, capacity).nonzero().tolist()
    kept = {(row, choice) for row, choice in kept_rows}
    right = token_by_token(layer, tokens, kept)
    assert torch.allclose(out, right, atol=1e-12, rtol=0)
    assert layer.counts.max() <= capacity < layer.load.max()
    assert mx.dropped(layer).item() == pytest.approx(1 - len(kept) / 16)


def test_bias_changes_the_choice_and_not_the_gates():
    layer = layer_of(experts=4, chosen=1)
    tokens = torch.randn(5, 6, dtype=torch.float64)
    _, _, chances = layer.router(tokens)
    with torch.no_grad():
        layer.router.bias[3] = 10.0
    chosen, gates, _ = layer.router(tokens)
    assert chosen.flatten().tolist() == [3] * 5
    assert torch.equal(gates, chances[:, 3:])


def gpt(balance):
    torch.manual_seed(0)
    model = ByteGPT(Sizes(width=12, heads=2, blocks=1, context=8))
    mx.replace_mlps(model, Mixture(4, 2, balance))
    return model


def test_balance_loss_is_least_for_equal_chances():
    model = gpt("loss")
    layer = mx.mixtures(model)[0]
    even = torch.full((6, 4), 0.25)
    skewed = torch.tensor([[0.7, 0.1, 0.1, 0.1]]).expand(6, 4)
    layer.chances = even
    least = mx.balance_loss(model, torch.tensor([[3, 3, 3, 3]]))
    assert least.item() == pytest.approx(mx.LOSS_WEIGHT)
    layer.chances = skewed
    more = mx.balance_loss(model, torch.tensor([[6, 2, 2, 2]]))
    assert more.item() == pytest.approx(mx.LOSS_WEIGHT * 4 * (0.35 + 3 / 60))
    assert mx.balance_loss(gpt("bias"), torch.tensor([[6, 2, 2, 2]])).item() == 0


def test_biases_move_against_the_load():
    model = gpt("bias")
    mx.shift_biases(model, torch.tensor([[9, 3, 0, 4]]))
    step = mx.BIAS_STEP
    expected = torch.tensor([-step, step, step, 0.0])
    assert torch.equal(mx.mixtures(model)[0].router.bias, expected)


def test_a_token_uses_as_many_parameters_as_in_the_mlp(capsys):
    """k experts are as large; what is added is the router, and k - 1 biases."""
    sizes = Sizes(width=12, heads=2, blocks=3, context=8)
    dense = sum(p.numel() for p in ByteGPT(sizes).parameters())
    model = ByteGPT(sizes)
    mx.replace_mlps(model, Mixture(6, 2))
    added = sizes.blocks * (6 * sizes.width + sizes.width)
    assert f"of which a token uses {dense + added:,}\n" in capsys.readouterr().out
