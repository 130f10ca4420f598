"""src/starter: the two files to copy, run as they are and with their places changed."""

import argparse
import ast
import math
import multiprocessing
import re
import runpy
import sys
from contextlib import nullcontext
from datetime import timedelta

import pytest
import torch

from tests.scripts.starters import (
    BOTH,
    FAST,
    STARTER,
    changed,
    end,
    found,
    start,
    state,
    train,
)

# The files


@BOTH
def test_one_file_needs_only_torch_and_marks_three_places(name):
    text = (STARTER / name).read_text()
    imports = [node for node in ast.walk(ast.parse(text)) if hasattr(node, "names")]
    modules = {
        (getattr(node, "module", None) or alias.name).split(".")[0]
        for node in imports
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert modules <= {"torch", *sys.stdlib_module_names}
    assert re.findall(r"^# \((\d)\) your (\w+)", text, re.M) == [
        ("1", "data"),
        ("2", "model"),
        ("3", "loss"),
    ]


@BOTH
def test_gpu_of_the_rank_joins_with_time_for_a_save(name, monkeypatch):
    names, joined = runpy.run_path(STARTER / name, run_name="starter"), {}
    for number, variable in enumerate(("RANK", "WORLD_SIZE", "LOCAL_RANK"), start=5):
        monkeypatch.setenv(variable, str(number))  # 5 of 6, the 7th of its node
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", lambda gpu: joined.update(set=gpu))
    monkeypatch.setattr(
        torch.distributed,
        "init_process_group",
        lambda *given, **more: joined.update(given=given, **more),
    )
    args = names["join_ranks"](argparse.Namespace())
    gpu = torch.device("cuda", 3)
    assert args.device == joined["set"] == joined["device_id"] == gpu
    backend, where, timeout, *ranks = joined["given"]
    assert (backend, where, ranks) == ("cpu:gloo,cuda:nccl", None, [6, 5])
    assert timeout > timedelta(minutes=10), "NCCL's default"


@pytest.mark.parametrize("device", [torch.device("cuda"), torch.device("cpu")])
def test_ddp_computes_in_bfloat16_on_a_gpu(device, monkeypatch):
    asked, names = [], runpy.run_path(STARTER / "train_ddp.py", run_name="starter")

    def autocast(*given, enabled):
        asked.append((*given, enabled))
        return nullcontext()

    names["mean_loss"].__globals__["loss_function"] = lambda *given: given
    with monkeypatch.context() as patch:
        patch.setattr(torch, "autocast", autocast)
        assert names["mean_loss"]("model", [], device) == ("model", [])
    assert asked == [(device.type, torch.bfloat16, device.type == "cuda")]


@pytest.mark.parametrize("device", [torch.device("cuda"), torch.device("cpu")])
def test_fsdp_computes_in_bfloat16_on_a_gpu_and_reduces_in_float32(device):
    names, policies = runpy.run_path(STARTER / "train_fsdp.py", run_name="starter"), []
    make = names["make_sharded_model"]
    make.__globals__["make_model"] = lambda: (torch.nn.Sequential(), [])
    make.__globals__["fully_shard"] = lambda _, mp_policy: policies.append(mp_policy)
    make(argparse.Namespace(device=device, seed=1))
    low = torch.bfloat16 if device.type == "cuda" else None
    assert [(p.param_dtype, p.reduce_dtype) for p in policies] == [(low, torch.float32)]


def test_fsdp_gives_memory_to_one_block_after_the_other():
    names = runpy.run_path(STARTER / "train_fsdp.py", run_name="starter")
    make, here = names["make_sharded_model"], names["make_sharded_model"].__globals__
    (made := []).append(here["make_model"])
    here["make_model"] = lambda: made.append(made[0]()) or made[1]
    here["fully_shard"] = lambda *_, **__: real.append([whole(b) for b in made[1][1]])
    whole, real = lambda block: not next(block.parameters()).is_meta, []
    make(argparse.Namespace(device=torch.device("cpu"), seed=1))
    assert real == [[k <= n for k in range(3)] for n in range(3)] + [[True] * 3]


# Training


@BOTH
def test_two_ranks_learn_save_and_resume(name, tmp_path):
    out = train(tmp_path, 2, STARTER / name, "2", "1", *FAST)
    losses = [float(x) for x in re.findall(r"\| loss ([\d.]+)", out)]
    assert losses[0] > 2 > losses[-1] + 0.5, out
    assert state(tmp_path, name)["step"] == 2 * (4001 // 256)
    out = train(tmp_path, 2, STARTER / name, "3", "1", *FAST)
    assert out.startswith("After 30 steps"), out


@pytest.mark.full
@BOTH
def test_result_is_that_of_one_rank_whatever_the_ranks_and_parts(name, tmp_path):
    """By SGD and without clipping: AdamW would hide gradients that are a multiple."""
    program = changed(
        tmp_path,
        name,
        optimizer=("AdamW(model.parameters())", "SGD(model.parameters(), 1, 0.9)"),
        clip=("max_norm=1.0", "max_norm=1e9"),
        dropout=("nn.Dropout(0.1)", "nn.Dropout(0.0)"),
    )
    ends = {}
    for ranks, parts in ((1, 1), (2, 1), (4, 1), (2, 4), (1, 2)):
        folder = tmp_path / f"{ranks}-{parts}"
        folder.mkdir()
        options = [*FAST, "--accumulation", str(parts)]
        out = train(folder, ranks, program, "1", "1", *options)
        ends[folder] = state(folder, name)["model"], out
    (expected, first), *others = ends.values()
    for tensors, out in others:
        assert re.findall(r"loss [\d.]{5}", out) == re.findall(r"loss [\d.]{5}", first)
        torch.testing.assert_close(tensors, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.full
@BOTH
@pytest.mark.parametrize(("ranks", "batch"), [(2, "998"), (4, "996")])
def test_every_validation_sample_counts_once(name, ranks, batch, tmp_path):
    """999 samples: 1 or 3 are left for a last batch, too few for every rank."""
    options = [*FAST, "--batch-size", batch]
    out = train(tmp_path, ranks, STARTER / name, "1", "1", *options)
    printed = float(found(r"validation loss ([\d.]+)", out))
    module = runpy.run_path(str(STARTER / name))
    made = module["make_model"]()
    model = (made[0] if isinstance(made, tuple) else made).eval()
    model.load_state_dict(state(tmp_path, name)["model"])
    points, classes = zip(*module["make_datasets"]()[1], strict=True)
    with torch.no_grad():
        batch = [torch.stack(points), torch.stack(classes)]
        assert abs(printed - module["loss_function"](model, batch).item()) < 2e-6


@pytest.mark.full
@BOTH
def test_rate_rises_to_the_given_one_and_falls_to_a_tenth(name, tmp_path):
    """Seen in the last steps of a run that is still warming up and of a longer one."""
    rates = []
    for epochs, warmup in (("1", "29"), ("2", "10")):
        folder = tmp_path / epochs
        folder.mkdir()
        options = [*FAST[:-4], "--warmup-steps", warmup, "--learning-rate", "0.01"]
        train(folder, 1, STARTER / name, epochs, "1", *options)
        rates.append(state(folder, name)["optimizer"]["param_groups"][0]["lr"])
    cosine = 0.55 + 0.45 * math.cos(math.pi * 19 / 20)
    assert rates == pytest.approx([0.01 * 15 / 30, 0.01 * cosine])


@BOTH
def test_forwards_ranks_and_epochs_draw_their_own_numbers(name):
    """An epoch has each of 12 samples once, in its own order; no draw is made twice."""

    class Drawing(list):
        def __getitem__(self, index):
            return torch.tensor(index), torch.rand(())

    def epoch(first):
        return [
            (index.item(), draw.item())
            for rank in (0, 1)
            for number in range(first, first + 6)
            for index, draw in zip(*get(rank, number), strict=True)
        ]

    def get(rank, number):
        parts = {"accumulation": 2, "batch_size": 4, "steps_per_epoch": 3}
        args = argparse.Namespace(**parts, seed=0, rank=rank, world_size=2, epoch=None)
        return micro_batch(Drawing(range(12)), args, number)

    micro_batch = runpy.run_path(str(STARTER / name))["micro_batch"]
    one, two = epoch(0), epoch(6)
    assert sorted(index for index, _ in one) == list(range(12))
    assert sorted(index for index, _ in two) == list(range(12))
    assert [index for index, _ in one] != [index for index, _ in two]
    assert len({draw for _, draw in one + two}) == 24
    assert epoch(6) == two


DRAWING = """
class Drawing(nn.Dropout):
    def forward(self, x):
        if self.training:
            print("drew", torch.rand(()).item(), file=sys.stderr)
        return super().forward(x)


# (2) your model"""


@pytest.mark.full
@BOTH
def test_dropout_of_each_rank_and_forward_is_another(name, tmp_path):
    program = changed(
        tmp_path,
        name,
        dropout=("nn.Dropout(0.1)", "Drawing(0.1)"),
        drawing=("# (2) your model", DRAWING),
    )
    options = [*FAST, "--batch-size", "1000", "--accumulation", "2"]
    statuses, _, err = end(start(tmp_path, 2, program, "1", "1", *options))
    assert statuses == [0, 0], err
    draws = re.findall("drew (.*)", err)
    layers = 3 if name == "train_fsdp.py" else 1
    assert len(draws) == len(set(draws)) == 2 * 4 * 2 * layers


COUNTING = """
from torch.utils._python_dispatch import TorchDispatchMode
class Counting(TorchDispatchMode):
    reduced = 0
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        Counting.reduced += "c10d" in str(op) and "reduce" in str(op)
        return op(*args, **(kwargs or {}))


# (2) your model"""


@pytest.mark.full
@BOTH
def test_gradients_are_reduced_once_per_step(name, tmp_path):
    """However many forwards a step has: without no_sync each would reduce them."""
    step = "        loss = train_step("
    program = changed(
        tmp_path,
        name,
        counting=("# (2) your model", COUNTING),
        count=(step, f"        with Counting():\n    {step}"),
        show=("| saved", "| reduced {Counting.reduced} times | saved"),
    )
    counts = []
    for accumulation in ("1", "3"):
        folder = tmp_path / accumulation
        folder.mkdir()
        options = ["--batch-size", "1200", "--accumulation", accumulation]
        out = train(folder, 2, program, "1", "1", *FAST, *options)
        counts.append(int(found(r"reduced (\d+) times", out)))
    assert counts[0] == counts[1] > 0


@BOTH
def test_all_data_workers_are_forked_before_the_first_step(name, tmp_path):
    """Beside gloo's threads, which a step keeps busy, a fork may hang."""
    report = 'os.register_at_fork(after_in_parent=lambda: print("forked", flush=True))'
    program = changed(tmp_path, name, hook=("# (2) your", f"{report}\n\n\n# (2) your"))
    options = [*FAST, "--workers", "1", "--log-every", "1"]
    out = train(tmp_path, 2, program, "2", "1", *options)
    before, _, after = out.partition("\nstep 1 ")
    assert after.count("validation loss") == 2
    forks = multiprocessing.get_start_method() == "fork"  # not in Python 3.14
    assert "forked" not in after and before.count("forked") == 2 * forks


@pytest.mark.full
@BOTH
def test_gradient_of_all_ranks_is_clipped_to_the_norm_of_1(name, tmp_path):
    """A step of SGD with rate 1 is as long as the gradient that it is given."""
    program = changed(
        tmp_path,
        name,
        optimizer=("AdamW(model.parameters())", "SGD(model.parameters())"),
        loss=("return nn.functional", "return 1000 * nn.functional"),
    )
    ends = []
    for rate in ("0", "1"):
        folder = tmp_path / rate
        folder.mkdir()
        options = ["--batch-size", "4000", "--warmup-steps", "0"]
        options += ["--learning-rate", rate]
        train(folder, 2, program, "1", "1", *options)
        ends.append(state(folder, name)["model"].values())
    steps = [after - before for before, after in zip(*ends, strict=True)]
    length = torch.cat([step.flatten() for step in steps]).norm().item()
    assert length == pytest.approx(1, abs=1e-4)
