"""The starters' options for speed and memory: each trains, and what each does."""

import runpy
from types import SimpleNamespace

import pytest
import torch

from tests.needs import needs
from tests.scripts.starters import (
    ALIKE,
    BOTH,
    FAST,
    STARTER,
    assert_same_end,
    state,
    train,
)

DDP, FSDP = "train_ddp.py", "train_fsdp.py"
EXACT = "--prefetch", "--checkpoint-activations", "--tf32"  # on a CPU


def trained(folder, name, *options):
    """The end of a run of two epochs with these options."""
    folder.mkdir()
    train(folder, 2, STARTER / name, "2", *FAST, *options)
    return state(folder, name)


def largest_gap(left, right):
    gaps = [(a - right["model"][n]).abs().max() for n, a in left["model"].items()]
    return max(gaps).item()


@pytest.mark.full
def test_recomputing_and_prefetching_change_no_bit(tmp_path):
    plain = trained(tmp_path / "plain", FSDP)
    assert_same_end(plain, trained(tmp_path / "options", FSDP, *EXACT))


@ALIKE
def test_fused_optimizer_differs_by_rounding_only(name, tmp_path):
    plain = trained(tmp_path / "plain", name)
    fused = trained(tmp_path / "fused", name, "--fused")
    assert 0 < largest_gap(plain, fused) < 1e-4


@pytest.mark.nightly
@needs("g++")
@BOTH
def test_compiled_run_learns_and_is_saved_under_the_same_names(name, tmp_path):
    """Its dropout draws other numbers: that shows that it is compiled at all."""
    plain = trained(tmp_path / "plain", name)
    options = [] if name == DDP else ["--checkpoint-activations"]
    compiled = trained(tmp_path / "compiled", name, "--compile", *options)
    assert plain["model"].keys() == compiled["model"].keys()
    assert 1e-3 < largest_gap(plain, compiled) < 0.5


def load(name):
    return runpy.run_path(STARTER / name, run_name="starter")


@pytest.mark.parametrize("option", ["checkpoint_activations", "compile", None])
def test_blocks_recompute_or_compile_only_if_asked(option, monkeypatch):
    """A block that recomputes runs its forward a second time in backward."""
    names, calls, compiled = load(FSDP), [], []
    linear = torch.nn.Linear(2, 2)
    linear.register_forward_pre_hook(lambda *_: calls.append("forward"))
    block = torch.nn.Sequential(linear)
    monkeypatch.setattr(torch, "compile", lambda call: compiled.append(call) or call)
    chosen = {"checkpoint_activations": False, "compile": False}
    if option:
        chosen[option] = True
    config = SimpleNamespace(**chosen)
    names["prepare_blocks"]([block], config)
    block(torch.ones(1, 2)).sum().backward()
    assert len(calls) == (2 if option == "checkpoint_activations" else 1)
    assert len(compiled) == (option == "compile")
    assert list(block.state_dict()) == ["0.weight", "0.bias"]


@BOTH
def test_options_are_off_by_default(name, monkeypatch):
    names = load(name)
    monkeypatch.setattr("sys.argv", [name])
    config = vars(names["parse_command_line"]())
    switches = {key for key, value in config.items() if value is False}
    of_both = {"cpu", "compile", "fused", "tf32"}
    of_fsdp = {"checkpoint_activations", "prefetch"}
    assert switches == (of_both if name == DDP else of_both | of_fsdp)
    assert not any(value is True for value in config.values())


@BOTH
def test_tf32_is_switched_on_before_the_model_is_made(name, monkeypatch):
    names = load(name)
    monkeypatch.setattr("sys.argv", [name, "--tf32"])
    config, asked = names["parse_command_line"](), []

    def note(precision):
        asked.append(precision)
        raise InterruptedError

    monkeypatch.setattr(torch, "set_float32_matmul_precision", note)
    with pytest.raises(InterruptedError):
        names["make_run"](config, torch.device("cpu"))
    assert asked == ["high"]
