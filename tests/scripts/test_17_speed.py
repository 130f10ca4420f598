"""src/17_speed.py and src/17_fsdp_accumulation.py: what a learner sees is counted."""

import shutil
from pathlib import Path

import pytest

from tests.in_ranks import assert_right, every_check_in
from tests.scripts.trainings import SRC, script, sentence, torchrun

SPEED, FSDP = SRC / "17_speed.py", SRC / "17_fsdp_accumulation.py"


@every_check_in(Path(__file__).resolve().parent / "ranks_17_speed.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


def counted(done):
    """Option -> (calls, MB sent, MB saved, GFLOP), from the printed table."""
    assert done.returncode == 0, done.stderr
    table = done.stdout.partition("GFLOP\n")[2].splitlines()
    return {row.split()[0]: tuple(map(float, row.split()[3:])) for row in table}


def test_checkpointing_saves_less_and_computes_more(tmp_path):
    rows = counted(
        script(tmp_path, "17_speed.py", 1, "--with", "workers", "checkpoint")
    )
    assert rows["workers"] == rows["nothing"] == (0, 0, 6.82, 2.87)
    assert rows["checkpoint"] == (0, 0, 0.86, 3.47)


@pytest.mark.full
def test_fewer_calls_and_fewer_bytes(tmp_path):
    remedies = "no-sync", "one-bucket", "fp16-hook"
    rows = counted(torchrun(tmp_path, 2, SPEED, 1, "--with", *remedies))
    assert [rows[name][:2] for name in ("nothing", *remedies)] == [
        (28, 8.05),
        (7, 2.01),
        (1, 2.01),
        (1, 1.01),
    ]


@pytest.mark.full
def test_hooks_send_half_or_far_less(tmp_path):
    """PowerSGD in three steps: each reduction sends biases, columns, then rows."""
    half = counted(torchrun(tmp_path, 2, SPEED, 1, "--with", "bf16-hook"))
    assert half["nothing"][:2] == (28, 8.05) and half["bf16-hook"][:2] == (28, 4.02)
    few = counted(torchrun(tmp_path, 2, SPEED, 3, "--with", "powersgd"))
    assert few["powersgd"][:2] == (4 * 3, 0.21)


@pytest.mark.full
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
        (["no-sync"], "--with no-sync needs several ranks"),
        (["bf16", "fp16"], "--with bf16 fp16: choose one of the two"),
        (["faster"], "invalid choice: 'faster'"),
    ],
)
def test_bad_options_are_one_sentence(tmp_path, options, words):
    assert words in sentence(script(tmp_path, "17_speed.py", 1, "--with", *options))


@pytest.mark.parametrize("other", ["fp16-hook", "bf16-hook"])
def test_only_one_hook_can_be_chosen(tmp_path, other):
    options = "--with", "powersgd", other
    done = script(tmp_path, "17_speed.py", 1, *options, WORLD_SIZE="2")
    assert f"--with {other} powersgd: choose one of the two" in sentence(done)


def test_compiling_without_a_compiler_is_one_sentence(tmp_path):
    done = script(tmp_path, "17_speed.py", 1, "--with", "compile", CXX="no-compiler")
    assert "--with compile needs a C++ compiler" in sentence(done)


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("g++"), reason="apt install g++")
def test_checkpointed_blocks_are_compiled(tmp_path):
    command = "17_speed.py", 1, "--with", "checkpoint", "compile"
    done = script(tmp_path, *command, TORCHINDUCTOR_CACHE_DIR=tmp_path / "kernels")
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["nothing", "checkpoint", "compile"]
    assert rows[-1].endswith("  not counted")
    assert list((tmp_path / "kernels").rglob("*.so"))


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("g++"), reason="apt install g++")
def test_compiled_blocks_get_large_buckets(tmp_path):
    kernels = {"TORCHINDUCTOR_CACHE_DIR": tmp_path / "kernels"}
    done = torchrun(tmp_path, 2, SPEED, 1, "--with", "compile", **kernels)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split()[0] == "compile"
