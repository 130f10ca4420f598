"""src/instruments/17_recipe.py: each line trains the same model, or is skipped."""

import importlib
import json
import subprocess
import types

import pytest
import torch

from tests.scripts.trainings import script, sentence

recipe = importlib.import_module("instruments.17_recipe")
CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
SIZES = {"width": 16, "heads": 2, "blocks": 2, "context": 8, "batch_size": 3}
OPTIONS = [f"--{name.replace('_', '-')}={size}" for name, size in SIZES.items()]


def config(**changed):
    chosen = {"lines": [], "steps": 2, "json": None, "once": False}
    return recipe.Config(**SIZES | chosen | changed)


def measured(*lines):
    return recipe.measure(set(lines), config(), CPU)


@pytest.mark.quick
def test_skipped_row_says_why(tmp_path):
    options = ["--steps", "2", "--lines", "tf32", "numa"]
    done = script(tmp_path, "17_recipe.py", *OPTIONS, *options)
    assert done.returncode == 0, done.stderr
    heading, nothing, tf32, numa = done.stdout.splitlines()
    assert heading.split()[0] == "with" and nothing.split()[0] == "nothing"
    assert tf32 == "tf32        skipped: TF32 is a format of NVIDIA's GPUs"
    assert numa == "numa        skipped: no GPU that a core could be near"


@pytest.mark.full
def test_rows_add_up(tmp_path):
    options = ["--steps", "2", "--lines", "checkpoint", "--json", "rows.json"]
    done = script(tmp_path, "17_recipe.py", *OPTIONS, *options)
    assert done.returncode == 0, done.stderr
    _, _, checkpoint, last = done.stdout.splitlines()
    assert checkpoint.split()[0] == "checkpoint"
    assert last.startswith("All of them together, on cpu: ")
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert list(rows) == ["nothing", "checkpoint"]
    assert rows["checkpoint"]["saved_mb"] < rows["nothing"]["saved_mb"]
    assert rows["checkpoint"]["loss"] == rows["nothing"]["loss"]
    assert rows["nothing"]["tokens_per_s"] > 0 and rows["nothing"]["peak_gb"] > 0


def test_each_line_trains_the_same_model():
    exact = measured()
    for lines in (["fused"], ["checkpoint"], ["bf16"], ["bf16", "fused", "checkpoint"]):
        close = 1e-2 if "bf16" in lines else 1e-5
        assert measured(*lines).loss == pytest.approx(exact.loss, rel=close), lines


def test_optimizer_is_fused_only_if_asked(monkeypatch):
    asked = []
    monkeypatch.setattr(
        recipe.torch.optim, "AdamW", lambda *_, fused: asked.append(fused)
    )
    recipe.build({"fused"}, config(), CPU)
    recipe.build(set(), config(), CPU)
    assert asked == [True, None]


def test_tf32_is_a_setting_of_the_process():
    before = torch.get_float32_matmul_precision()
    try:
        recipe.build({"tf32"}, config(), CPU)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize(("capability", "emulated"), [((7, 0), True), ((9, 0), False)])
def test_card_that_only_emulates_a_format_is_named(capability, emulated, monkeypatch):
    card = types.SimpleNamespace(
        get_device_capability=lambda: capability, get_device_name=lambda: "Some card"
    )
    monkeypatch.setattr(torch, "cuda", card)
    for line in ("tf32", "bf16"):
        said = recipe.why_not(line, CUDA)
        assert said == ("Some card only emulates it" if emulated else "")


def test_line_about_cores_needs_two_nodes_of_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(recipe, "NODES", tmp_path)
    (tmp_path / "node0").mkdir()
    assert recipe.why_not("numa", CUDA) == "all memory of this machine is equally near"
    (tmp_path / "node1").mkdir()
    assert recipe.why_not("numa", CUDA) == ""
    assert recipe.why_not("numa", CPU) == "no GPU that a core could be near"


def test_compiling_needs_a_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "/no/compiler")
    assert "install g++" in recipe.why_not("compile", CPU)
    monkeypatch.setattr(recipe.importlib.util, "find_spec", lambda name: None)
    assert recipe.why_not("compile", CUDA) == "it needs the package triton"


def test_cores_are_read_as_linux_lists_them():
    assert recipe.cores_of("0-3,8\n") == {0, 1, 2, 3, 8}


def test_process_gets_its_lines_and_the_setting_of_the_allocator(monkeypatch):
    started = []
    row = recipe.Row("cuda:0", tokens_per_s=7.0)

    def run(words, env, **_):
        started.append((words, env.get("PYTORCH_CUDA_ALLOC_CONF")))
        return subprocess.CompletedProcess(words, 0, json.dumps(recipe.asdict(row)))

    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    monkeypatch.setattr(subprocess, "run", run)
    assert recipe.in_new_process(["bf16"], config()) == row
    recipe.in_new_process(["bf16", "allocator"], config())
    assert started[0][0][-2:] == ["--lines", "bf16"] and started[0][1] is None
    assert started[1][0][-3:] == ["--lines", "bf16", "allocator"]
    assert started[1][1] == "expandable_segments:True"


def test_line_that_fails_is_named(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(recipe.BadInput, match="the run with bf16 compile failed"):
        recipe.in_new_process(["bf16", "compile"], config())


def test_skipped_line_is_left_out_of_the_rows_after_it(monkeypatch, capsys):
    tried = []

    def in_new_process(lines, args):
        tried.append(lines)
        skipped = "not here" if lines[-1:] == ["checkpoint"] else ""
        return recipe.Row("cuda:0", skipped, 10.0 * len(tried), held_gb=2.0)

    monkeypatch.setattr(recipe, "in_new_process", in_new_process)
    recipe.measure_all(config(lines=["checkpoint", "bf16", "fused"]))
    assert tried == [[], ["checkpoint"], ["bf16"], ["bf16", "fused"]]
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split()[2] for row in rows if "skipped" not in row] == [
        "-",
        "3.00",
        "1.33",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--steps", "1"], "--steps 1 shows no spread: choose 2 or more"),
        (["--lines", "fused", "fused"], "--lines fused fused: name each line once"),
        (["--width", "10", "--heads", "3"], "--width 10 cannot be divided among"),
    ],
)
def test_bad_input_is_one_sentence(options, words, tmp_path):
    assert words in sentence(script(tmp_path, "17_recipe.py", *options))
