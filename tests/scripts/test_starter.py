"""src/starter: the two files to copy, run as they are and with their places changed."""

import argparse
import ast
import importlib
import inspect
import math
import multiprocessing
import os
import random
import re
import runpy
import signal
import sys
import time
from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace

import numpy
import pytest
import torch
import torch.distributed as dist

from tests.scripts.starters import (
    BOTH,
    FAST,
    STARTER,
    assert_same_end,
    changed,
    end,
    found,
    start,
    state,
    train,
)

# The name in torch.distributed is that of the function in some versions
RENDEZVOUS = importlib.import_module("torch.distributed.rendezvous")

# The files


@BOTH
def test_one_file_needs_only_torch_and_marks_five_places(name):
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
        ("4", "metrics"),
        ("5", "optimizer"),
    ]


@BOTH
def test_gpu_of_the_rank_joins_with_time_for_a_save(name, monkeypatch):
    store, joined = dist.HashStore(), {}
    monkeypatch.setattr(RENDEZVOUS, "rendezvous", lambda *_: iter([(store, 5, 6)]))
    card = SimpleNamespace(uuid="GPU-1")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    names = runpy.run_path(STARTER / name, run_name="starter")
    for variable, number in {"RANK": 5, "WORLD_SIZE": 6, "LOCAL_RANK": 3}.items():
        monkeypatch.setenv(variable, str(number))
    monkeypatch.setenv("MASTER_ADDR", "n1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", lambda gpu: joined.update(set=gpu))
    monkeypatch.setattr(
        torch.distributed,
        "init_process_group",
        lambda backend, **more: joined.update(backend=backend, **more),
    )
    world = names["find_world"]()
    assert (world.rank, world.local_rank, world.world_size) == (5, 3, 6)
    names["join_ranks"](world)
    gpu = torch.device("cuda", 3)
    assert world.device == joined["set"] == joined["device_id"] == gpu
    assert (joined["rank"], joined["world_size"]) == (5, 6)
    assert joined["backend"] == "cpu:gloo,cuda:nccl"
    assert joined["timeout"] > timedelta(minutes=10), "NCCL's default"
    assert joined["store"] is store


@BOTH
def test_second_rank_on_a_gpu_is_refused_before_nccl_starts(name, monkeypatch):
    names, said = runpy.run_path(STARTER / name, run_name="starter"), []
    refuse = names["refuse_shared_gpu"]
    monkeypatch.setitem(refuse.__globals__, "end_with", said.append)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    store = dist.HashStore()
    for rank, uuid in enumerate(["GPU-1", "GPU-2", "GPU-1", None, None]):
        card = SimpleNamespace(uuid=uuid)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _, c=card: c)
        refuse(store, names["World"](rank, 0, 5, torch.device("cuda", 0)))
    (sentence,) = said
    assert sentence.startswith("rank 2 and another one have the same GPU")
    assert "(CUDA_VISIBLE_DEVICES=0)" in sentence
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")  # the store may stay
    card = SimpleNamespace(uuid="GPU-1")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)
    refuse(store, names["World"](0, 0, 5, torch.device("cuda", 0)))
    assert len(said) == 1


# A batch script and the shell that salloc opens have a rank's variables; srun's tasks
# have a small number of a step.
ADAMW = "AdamW(model.parameters(), fused=fused or None)"
SLURM = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "4"}
TASK = SLURM | {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0"}
OF_TORCHRUN = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}


@BOTH
@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, (0, 0, 1)),
        (SLURM, (0, 0, 1)),
        (SLURM | {"SLURM_STEP_ID": "4294967290"}, (0, 0, 1)),
        (TASK, (3, 1, 4)),
        (TASK | OF_TORCHRUN, (1, 1, 2)),
    ],
    ids=["alone", "batch script", "salloc", "srun", "torchrun in srun"],
)
def test_place_is_that_of_the_innermost_launcher(name, environ, place, monkeypatch):
    monkeypatch.setattr(os, "environ", environ)
    world = runpy.run_path(STARTER / name, run_name="starter")["find_world"]()
    assert (world.rank, world.local_rank, world.world_size) == place


def device_of(name, monkeypatch, environ, gpus):
    """The device that a starter chooses where so many GPUs are seen."""
    monkeypatch.setattr(os, "environ", environ)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)

    def leave(status):
        raise SystemExit(status)

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    names = runpy.run_path(STARTER / name, run_name="starter")
    return str(names["find_world"](cpu="CPU" in environ).device)


SECOND = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
ELASTIC = SECOND | {"TORCHELASTIC_RUN_ID": "x"}


@BOTH
@pytest.mark.parametrize(
    ("environ", "gpus", "device"),
    [
        (ELASTIC, 0, "cpu"),
        (ELASTIC, 2, "cuda:1"),
        (ELASTIC | {"SLURM_GPUS_ON_NODE": "2", "CPU": "1"}, 0, "cpu"),
        (TASK | {"SLURM_GPUS_ON_NODE": "2"}, 1, "cuda:0"),
        ({"SLURM_GPUS_ON_NODE": "0"}, 0, "cpu"),
    ],
    ids=["no GPU", "torchrun", "--cpu", "srun shows one", "no GPU in the job"],
)
def test_rank_takes_the_gpu_that_is_its_own(name, environ, gpus, device, monkeypatch):
    assert device_of(name, monkeypatch, environ, gpus) == device


@BOTH
@pytest.mark.parametrize(
    ("environ", "gpus", "words"),
    [
        (ELASTIC, 1, "local rank 1 has no GPU of its own, this process sees 1"),
        (TASK, 1, "local rank 1 has no GPU of its own, this process sees 1"),
        ({"SLURM_GPUS_ON_NODE": "8"}, 0, "has GPUs (SLURM_GPUS_ON_NODE=8), but this"),
        (ELASTIC | {"SLURM_JOB_GPUS": "0,1"}, 0, ""),
    ],
    ids=["two on one, torchrun", "two on one, srun", "torch for CPUs", "second rank"],
)
def test_gpu_that_is_missing_ends_the_run_in_one_sentence(
    name, environ, gpus, words, monkeypatch, capsys
):
    with pytest.raises(SystemExit) as left:
        device_of(name, monkeypatch, environ, gpus)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == bool(words)


@BOTH
@pytest.mark.parametrize(
    ("cores", "ranks_here", "warns"), [(2, 8, True), (24, 8, False), (2, None, True)]
)
def test_rank_with_fewer_cores_than_workers_is_warned_of(
    name, cores, ranks_here, warns, monkeypatch, capsys
):
    environ = {"LOCAL_WORLD_SIZE": str(ranks_here)} if ranks_here else {}
    monkeypatch.setattr(os, "environ", environ)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    names = runpy.run_path(STARTER / name, run_name="starter")
    config = SimpleNamespace(workers=2)
    for kind in ("cpu", "cuda"):
        world = names["World"](0, 0, 1, torch.device(kind))
        names["warn_of_few_cores"](world, config)
        said = capsys.readouterr().out
        assert ("and needs 3 for itself" in said) == (warns and kind == "cuda")


@BOTH
def test_gpu_computes_in_bfloat16_unless_it_would_only_emulate_it(name, monkeypatch):
    low_precision = runpy.run_path(STARTER / name, run_name="s")["low_precision"]
    for capability, dtype in (((7, 0), torch.float16), ((8, 0), torch.bfloat16)):
        monkeypatch.setattr(
            torch.cuda, "get_device_capability", lambda _, of=capability: of
        )
        assert low_precision(torch.device("cuda")) == dtype


@pytest.mark.parametrize("device", [torch.device("cuda"), torch.device("cpu")])
def test_ddp_computes_in_low_precision_on_a_gpu(device, monkeypatch):
    asked, names = [], runpy.run_path(STARTER / "train_ddp.py", run_name="starter")

    def autocast(*given, enabled):
        asked.append((*given, enabled))
        return nullcontext()

    here = names["forward"].__globals__
    here["predict"] = here["loss_function"] = lambda *given: given
    here["low_precision"] = lambda device: torch.bfloat16
    with monkeypatch.context() as patch:
        patch.setattr(torch, "autocast", autocast)
        outputs, loss = names["forward"]("model", "batch", device)
    assert (outputs, loss) == (("model", "batch"), (outputs, "batch"))
    assert asked == [(device.type, torch.bfloat16, device.type == "cuda")]


MADE = """
def make_model() -> tuple[nn.Module, list[nn.Module]]:
    print("made on", torch.empty(0).device, "by", os.environ["RANK"], flush=True)
    return made_by_you()
"""


def test_fsdp_has_the_whole_model_on_the_host_of_rank_0_alone(tmp_path):
    program = changed(
        tmp_path,
        "train_fsdp.py",
        model=("def make_model()", "def made_by_you()"),
        predict=("def predict(", f"{MADE}\n\ndef predict("),
    )
    options = [*FAST, "--batch-size", "4000"]
    ranks = start(tmp_path, 2, program, "1", "1", *options)
    (of_0, err), (of_1, _) = [rank.communicate() for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], err
    assert re.findall("made on .*", of_0) == ["made on meta by 0", "made on cpu by 0"]
    assert re.findall("made on .*", of_1) == ["made on meta by 1"]


TIED = """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(10, 32, bias=False)
        self.body = nn.Sequential(nn.Linear(32, 32), nn.BatchNorm1d(32), nn.Tanh())
        self.head = nn.Linear(10, 32, bias=False)
        self.head.weight = self.embedding.weight
        nn.init.normal_(self.head.weight, std=0.02)
        self.register_buffer("scale", torch.full((10,), 3.0), persistent=False)

    def forward(self, points):
        hidden = self.body(points)
        return hidden @ self.head.weight * self.scale + self.embedding.weight.sum()


def make_model():
    model = Tied()
    return model, [model.body]


def predict("""
SEEN = """    checkpoints.load(run)
    print("parameters", sum(p.numel() for p in run.model.parameters()))
    print("buffer", run.model.scale.sum().item(), flush=True)
"""


def tied(folder, model, **more):
    """train_fsdp.py with a model whose embedding is its head."""
    return changed(
        folder,
        "train_fsdp.py",
        made=("def make_model()", "def other_model()"),
        model=("def predict(", model.lstrip()),
        **more,
    )


def test_fsdp_keeps_ties_own_initial_values_and_buffers(tmp_path):
    """As one process makes it by itself, whatever the model does at its beginning."""
    program = tied(tmp_path, TIED, seen=("    checkpoints.load(run)\n", SEEN))
    options = [*FAST, "--batch-size", "4000", "--learning-rate", "0"]
    out = train(tmp_path, 2, program, "1", "1", *options)
    torch.manual_seed(0)
    model, _ = runpy.run_path(program, run_name="starter")["make_model"]()
    count = sum(parameter.numel() for parameter in model.parameters())
    assert f"parameters {count}\nbuffer 30.0\n" in out
    assert count == 32 * 10 + 32 * 32 + 32 + 2 * 32
    saved = state(tmp_path, "train_fsdp.py")["model"]
    for key, parameter in model.named_parameters(remove_duplicate=False):
        assert torch.equal(saved[key], parameter.detach()), key
    train(tmp_path, 2, program, "2", "1", *FAST, "--batch-size", "4000")
    saved = state(tmp_path, "train_fsdp.py")["model"]
    assert torch.equal(saved["head.weight"], saved["embedding.weight"])
    assert not torch.equal(saved["head.weight"], model.head.weight)


BLOCKS = {
    "a ModuleList": (
        "return model, [nn.ModuleList([model.body])]",
        "blocks must be the modules of a ModuleList, as in list(model.layers)",
    ),
    "the model itself": (
        "return model, [model]",
        "a block must be a part of the model, and this Tied is not",
    ),
    "one twice": (
        "return model, [model.body, model.body]",
        "body is twice among the blocks",
    ),
    "a tie that leaves its block": (
        "return model, [model.body, model.head]",
        "embedding.weight and head.weight are one parameter: take head out of the "
        "blocks",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("case", BLOCKS)
def test_fsdp_refuses_blocks_that_it_cannot_shard(case, tmp_path):
    blocks, words = BLOCKS[case]
    program = tied(tmp_path, TIED.replace("return model, [model.body]", blocks))
    statuses, _, err = end(start(tmp_path, 1, program, "1", "1", *FAST))
    assert (statuses, err.partition("error: ")[2]) == ([2], f"{words}\n")


@pytest.mark.nightly
def test_fsdp_resumes_with_a_parameter_that_has_no_gradient(tmp_path):
    """The optimizer has no state of it: nothing of it is in a checkpoint."""
    head = "def predict("
    unused = """made = make_model


def make_model():
    model, blocks = made()
    model.unused = nn.Parameter(torch.full((4,), 7.0))
    return model, blocks


"""
    program = changed(tmp_path, "train_fsdp.py", model=(head, unused + head))
    train(tmp_path, 2, program, "1", "1", *FAST)
    out = train(tmp_path, 2, program, "2", "1", *FAST)
    assert out.startswith("After 15 steps"), out
    assert state(tmp_path, "train_fsdp.py")["model"]["unused"].tolist() == [7.0] * 4


def test_fsdp_names_a_tensor_that_it_cannot_send(tmp_path):
    buffer = "        self.register_buffer("
    table = "        self.table = torch.ones(3)\n"
    program = tied(tmp_path, TIED.replace(buffer, table + buffer))
    statuses, _, err = end(start(tmp_path, 2, program, "1", "1", *FAST))
    assert statuses == [2, 2]
    assert err.partition("error: ")[2] == (
        "table is a tensor, but no parameter and no buffer: make it one by "
        "register_buffer\n"
    )


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
        optimizer=(ADAMW, "SGD(model.parameters(), 1, 0.9)"),
        dropout=("nn.Dropout(0.1)", "nn.Dropout(0.0)"),
    )
    ends = {}
    for ranks, parts in ((1, 1), (2, 1), (4, 1), (2, 4), (1, 2)):
        folder = tmp_path / f"{ranks}-{parts}"
        folder.mkdir()
        options = [*FAST, "--accumulation", str(parts), "--max-norm", "1e9"]
        out = train(folder, ranks, program, "1", "1", *options)
        ends[folder] = state(folder, name)["model"], out
    (expected, first), *others = ends.values()
    for tensors, out in others:
        assert re.findall(r"loss [\d.]{5}", out) == re.findall(r"loss [\d.]{5}", first)
        torch.testing.assert_close(tensors, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.nightly
@BOTH
@pytest.mark.parametrize(("ranks", "batch"), [(2, "998"), (4, "996")])
def test_every_validation_sample_counts_once(name, ranks, batch, tmp_path):
    """999 samples: 1 or 3 are left for a last batch, too few for every rank."""
    options = [*FAST, "--batch-size", batch]
    out = train(tmp_path, ranks, STARTER / name, "1", "1", *options)
    loss = float(found(r"validation loss ([\d.]+)", out))
    accuracy = float(found(r"validation loss [\d.]+, accuracy ([\d.]+)", out))
    module = runpy.run_path(str(STARTER / name))
    made = module["make_model"]()
    model = (made[0] if isinstance(made, tuple) else made).eval()
    model.load_state_dict(state(tmp_path, name)["model"])
    points, classes = zip(*module["make_datasets"]()[1], strict=True)
    batch = [torch.stack(points), torch.stack(classes)]
    with torch.no_grad():
        outputs = module["predict"](model, batch)
        assert abs(loss - module["loss_function"](outputs, batch).item()) < 2e-6
    right = sum((outputs.argmax(1) == batch[1]).tolist())
    assert abs(accuracy - right / len(points)) < 1e-6


@pytest.mark.nightly
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
        config = argparse.Namespace(accumulation=2, batch_size=4, seed=0)
        plan = argparse.Namespace(steps_per_epoch=3, micro_batch=1)
        world = argparse.Namespace(rank=rank, world_size=2)
        return TrainingBatches(Drawing(range(12)), config, plan, world)[number]

    TrainingBatches = runpy.run_path(str(STARTER / name))["TrainingBatches"]
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


@pytest.mark.nightly
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


@pytest.mark.nightly
@BOTH
def test_gradients_are_reduced_once_per_step(name, tmp_path):
    """However many forwards a step has: without no_sync each would reduce them."""
    step = "        loss = compute_gradients("
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
def test_all_data_workers_are_forked_before_the_process_group(name, tmp_path):
    """Beside the threads of gloo or NCCL, a fork may hang."""
    report = (
        "os.register_at_fork(after_in_parent=lambda: "
        'print(f"forked beside a group: {dist.is_initialized()}", flush=True))'
    )
    program = changed(tmp_path, name, hook=("# (2) your", f"{report}\n\n\n# (2) your"))
    options = [*FAST, "--workers", "1", "--log-every", "1"]
    out = train(tmp_path, 2, program, "2", "1", *options)
    assert out.count("validation loss") == 2
    forks = multiprocessing.get_start_method() == "fork"  # not in Python 3.14
    expected = ["forked beside a group: False"] * 2 * forks
    assert re.findall("forked .*", out) == expected


@pytest.mark.nightly
@BOTH
def test_scaled_gradients_give_the_same_end(name, tmp_path):
    """A V100 needs a GradScaler; by a power of two, it changes no bit of float32."""
    line = found(r"^(    scaled = .*)$", (STARTER / name).read_text())
    program = changed(tmp_path, name, scaler=(line, "    scaled = True"))
    ends = []
    for one in (STARTER / name, program):
        folder = tmp_path / one.parent.name
        folder.mkdir()
        train(folder, 2, one, "1", "1", *FAST, "--accumulation", "2")
        train(folder, 2, one, "2", "1", *FAST, "--accumulation", "2")
        ends.append(state(folder, name))
    assert_same_end(*ends)


@pytest.mark.nightly
@BOTH
def test_gradient_of_all_ranks_is_clipped_to_the_norm_of_1(name, tmp_path):
    """A step of SGD with rate 1 is as long as the gradient that it is given."""
    program = changed(
        tmp_path,
        name,
        optimizer=(ADAMW, "SGD(model.parameters())"),
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


@pytest.mark.full
@BOTH
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('{"accuracy": ', '{"loss": ', "metrics() must not return a 'loss' of its own"),
        (".float().mean()}", ".float()}", "accuracy must be one number, but is (256,)"),
        (
            "cross_entropy(outputs, classes",
            "mse_loss(outputs, outputs, reduction='none'",
            "loss must be one number, but is (256, 10)",
        ),
    ],
    ids=["a loss", "a vector", "loss is no number"],
)
def test_wrong_metric_is_named_before_the_first_step(name, old, new, words, tmp_path):
    program = changed(tmp_path, name, mistake=(old, new))
    statuses, out, err = end(start(tmp_path, 1, program, "1", "1", *FAST))
    assert statuses == [1]
    assert err.splitlines()[-1].endswith(f"ValueError: {words}"), err
    assert "step" not in out.partition("\n")[2]


@pytest.mark.full
@BOTH
def test_metric_may_be_a_number_of_python(name, tmp_path):
    program = changed(
        tmp_path, name, metric=(".float().mean()}", ".float().mean().item()}")
    )
    train(tmp_path, 1, STARTER / name, "1", "1", *FAST)
    out = train(tmp_path, 1, program, "1", "1", *FAST)
    assert re.search(r"nothing to train.*accuracy 0\.\d+", out), out


class Drawn(Exception):
    """What a user's make_datasets has drawn."""


def draw_data():
    raise Drawn(random.random(), torch.rand(1).item(), numpy.random.rand())


@BOTH
def test_what_the_data_draw_is_the_same_on_all_ranks_and_in_all_runs(name, monkeypatch):
    """Else ranks would share out samples of which each has others."""
    names = runpy.run_path(STARTER / name, run_name="starter")
    inspect.unwrap(names["main"]).__globals__.update(make_datasets=draw_data)
    monkeypatch.setattr(sys, "argv", [name])
    monkeypatch.setattr(signal, "signal", lambda number, action: None)
    drawn = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        random.seed()  # as in a new process
        torch.seed()
        numpy.random.seed()
        with pytest.raises(Drawn) as of_rank:
            names["main"]()
        drawn.append(of_rank.value.args)
    assert drawn[0] == drawn[1]


@pytest.mark.full
@BOTH
def test_data_that_differ_by_rank_are_refused(name, tmp_path):
    """As where a user has shared them out already."""
    sliced = 'range(int(os.environ["RANK"]), 4001, 2)'
    program = changed(tmp_path, name, data=("range(4001)", sliced))
    statuses, _, err = end(start(tmp_path, 2, program, "1", "1", *FAST))
    assert statuses == [2, 2]
    assert "rank 0 has (2001, 999) samples, rank 1 has (2000, 999)" in err, err


@pytest.mark.full
def test_ddp_resumes_with_a_parameter_that_has_no_gradient(tmp_path):
    made = "    model = make_model()"
    unused = "    model.unused = nn.Parameter(torch.ones(3))\n"
    program = changed(
        tmp_path,
        "train_ddp.py",
        model=(f"{made}.to(device)\n", f"{made}\n{unused}    model.to(device)\n"),
        ddp=("DDP(run.model)", "DDP(run.model, find_unused_parameters=True)"),
    )
    train(tmp_path, 2, program, "1", "1", *FAST)
    out = train(tmp_path, 2, program, "2", "1", *FAST)
    assert out.startswith("After 15 steps"), out


@pytest.mark.nightly
@BOTH
def test_model_that_is_not_finite_is_not_saved(name, tmp_path):
    """One NaN makes NaN of all: the snapshot before it is worth more."""
    lost = "return (points.sum() - math.nan) * nn.functional"
    program = changed(
        tmp_path,
        name,
        loss=("return nn.functional", "points, _ = batch\n    " + lost),
    )
    train(tmp_path, 2, STARTER / name, "1", "1", *FAST)
    before = state(tmp_path, name)
    statuses, _, err = end(start(tmp_path, 2, program, "2", "1", *FAST))
    assert statuses == [2, 2]
    assert "after step 30 the model is not finite" in err, err
    assert_same_end(state(tmp_path, name), before)


NORMALIZED = "nn.GELU(), nn.BatchNorm1d({}), "


@pytest.mark.nightly
@BOTH
def test_printed_validation_is_that_of_the_saved_model(name, tmp_path):
    """Each rank counts the statistics of BatchNorm from its own part of the batches."""
    size = "64" if name == "train_fsdp.py" else "128"
    program = changed(tmp_path, name, model=("nn.GELU(), ", NORMALIZED.format(size)))
    out = train(tmp_path, 2, program, "1", "1", *FAST)
    result = found(r"(validation loss .*)$", out)
    assert train(tmp_path, 2, program, "1", "1", *FAST).endswith(f"{result}\n")
