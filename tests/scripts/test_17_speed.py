"""17_speed.py and 17_fsdp_accumulation.py: what a learner sees is counted."""

import bz2
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.in_ranks import assert_right, every_check_in
from tests.needs import needs
from tests.scripts.trainings import SRC, script, sentence, torchrun

sys.path.insert(0, str(SRC))
from common.byte_gpt import load_text
from common.slow_pieces import LENGTH, SlowPieces

SPEED, FSDP = (
    SRC / "instruments/17_speed.py",
    SRC / "instruments/17_fsdp_accumulation.py",
)


@every_check_in(Path(__file__).resolve().parent / "ranks_17_speed.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


def test_each_piece_costs_the_decoding_of_a_document_and_no_nap(monkeypatch):
    """What workers save is work, not a time.sleep()."""
    decoded, decode = [], bz2.decompress
    monkeypatch.setattr(
        bz2, "decompress", lambda data: decoded.append(decode(data)) or decoded[-1]
    )
    monkeypatch.setattr(time, "sleep", lambda _seconds: pytest.fail("it sleeps"))
    pieces, text = SlowPieces(context=64), load_text()[0]
    rows = torch.stack([pieces[index] for index in (0, 1, len(pieces) - 1)])
    assert [len(one) for one in decoded] == 3 * [LENGTH]
    assert torch.equal(rows[:2].flatten(), text[:130].long())
    start = 3 * LENGTH + (LENGTH // 65 - 1) * 65
    assert torch.equal(rows[2], text[start : start + 65].long())


def counted(done):
    """Option -> (calls, MB sent, MB saved, GFLOP), from the printed table."""
    assert done.returncode == 0, done.stderr
    table = done.stdout.partition("GFLOP\n")[2].splitlines()
    return {row.split()[0]: tuple(map(float, row.split()[3:])) for row in table}


@pytest.mark.nightly
def test_checkpointing_saves_less_and_computes_more(tmp_path):
    rows = counted(
        script(tmp_path, "17_speed.py", 1, "--with", "workers", "checkpoint")
    )
    assert rows["workers"] == rows["nothing"] == (0, 0, 6.82, 2.87)
    assert rows["checkpoint"] == (0, 0, 0.86, 3.47)


@pytest.mark.nightly
def test_fewer_calls_and_fewer_bytes(tmp_path):
    remedies = "no-sync", "one-bucket", "fp16-hook"
    rows = counted(torchrun(tmp_path, 2, SPEED, 1, "--with", *remedies))
    assert [rows[name][:2] for name in ("nothing", *remedies)] == [
        (28, 8.05),
        (7, 2.01),
        (1, 2.01),
        (1, 1.01),
    ]


@pytest.mark.nightly
def test_hooks_send_half_or_far_less(tmp_path):
    """PowerSGD in three steps: each reduction sends biases, columns, then rows."""
    half = counted(torchrun(tmp_path, 2, SPEED, 1, "--with", "bf16-hook"))
    assert half["nothing"][:2] == (28, 8.05) and half["bf16-hook"][:2] == (28, 4.02)
    few = counted(torchrun(tmp_path, 2, SPEED, 3, "--with", "powersgd"))
    assert few["powersgd"][:2] == (4 * 3, 0.21)


POWER_SGD = """
import torch.distributed as dist
from tests.scripts.ranks_17_speed import EXACT, ROUNDED, alike
from tests.scripts.ranks_17_speed import gradients, training, wrong_pairs

dist.init_process_group("gloo")
rank, found = dist.get_rank(), []
plain, power = gradients(rank), gradients(rank, "powersgd")
for name in (*EXACT, *ROUNDED):
    # the first two reductions send everything
    usual = plain if name == "no-sync" else power
    found += wrong_pairs((name, "powersgd"), lambda pair: usual)
made = training(rank, "powersgd")
for _ in range(3):
    made.step()
found += [] if all(map(alike, made.model.parameters())) else ["unequal weights"]
scales = []
for chosen in ("fp16",), ("fp16", "powersgd"):
    made = training(rank, *chosen)
    made.batches = iter(2 * list(made.batches))
    first = next(made.model.parameters())
    made.step()
    hook = first.register_hook(lambda gradient: gradient * float("inf"))
    made.step()
    hook.remove()
    for _ in range(3):
        made.step()
    scales.append(made.scaler.get_scale())
if rank == 0:
    print(found, scales)
del made, first
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.full
def test_powersgd_with_another_option_and_why_not_with_fp16(tmp_path):
    """After one infinite gradient, fp16 halves its scale, with powersgd for ever."""
    (tmp_path / "run.py").write_text(POWER_SGD, encoding="utf-8")
    done = torchrun(tmp_path, 2, tmp_path / "run.py", PYTHONPATH=f"{SRC.parent}:{SRC}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"[] {[2.0**15, 2.0**12]}"]


@pytest.mark.nightly
def test_what_fsdp_calls_sends_and_holds(tmp_path):
    done = torchrun(tmp_path, 2, FSDP, 1)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [[row[0], *row[3:]] for row in rows] == [
        ["nothing", "36", "20", "11.63", "1.57"],
        ["no-sync", "21", "5", "5.59", "2.46"],
        ["keep-whole", "5", "5", "2.01", "2.91"],
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["bf16", "fp16"], "--with bf16 fp16: choose one of the two"),
        (["workers", "bf16", "workers"], "--with workers workers: choose one of the"),
        (["faster"], "invalid choice: 'faster'"),
    ],
)
def test_bad_options_are_one_sentence(tmp_path, options, words):
    assert words in sentence(script(tmp_path, "17_speed.py", 1, "--with", *options))


@pytest.mark.parametrize("other", ["fp16-hook", "bf16-hook", "fp16"])
def test_powersgd_is_refused_with(tmp_path, other):
    options = "--with", "powersgd", other
    done = script(tmp_path, "17_speed.py", 1, *options, WORLD_SIZE="2")
    assert f"--with {other} powersgd: choose one of the two" in sentence(done)


def test_compiling_without_a_compiler_is_one_sentence(tmp_path):
    done = script(tmp_path, "17_speed.py", 1, "--with", "compile", CXX="no-compiler")
    assert "--with compile needs a C++ compiler" in sentence(done)


@pytest.mark.nightly
@needs("g++")
def test_checkpointed_blocks_are_compiled(tmp_path):
    command = "17_speed.py", 1, "--with", "checkpoint", "compile"
    done = script(tmp_path, *command, TORCHINDUCTOR_CACHE_DIR=tmp_path / "kernels")
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["nothing", "checkpoint", "compile"]
    assert rows[-1].endswith("  not counted")
    assert list((tmp_path / "kernels").rglob("*.so"))


@pytest.mark.nightly
@needs("g++")
def test_compiled_blocks_get_large_buckets(tmp_path):
    kernels = {"TORCHINDUCTOR_CACHE_DIR": tmp_path / "kernels"}
    done = torchrun(tmp_path, 2, SPEED, 1, "--with", "compile", **kernels)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split()[0] == "compile"
