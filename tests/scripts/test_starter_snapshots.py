"""src/starter: what is saved, what a failed save leaves, and what is refused."""

import errno
import multiprocessing
import os
import re
import runpy
import signal
import sys
from concurrent.futures import Future
from functools import partial

import pytest
import torch

from tests.scripts.starters import (
    BOTH,
    FAST,
    STARTER,
    changed,
    end,
    found,
    read_until,
    start,
    train,
)


def refusal(folder, name, *arguments, ranks=1):
    """The one sentence that a run ends with, and status 2 on all ranks."""
    statuses, _, err = end(start(folder, ranks, STARTER / name, *arguments))
    assert statuses == [2] * ranks, err
    (line,) = err.splitlines()
    return line.partition("error: ")[2]


@BOTH
def test_batch_that_ranks_cannot_share_is_refused(name, tmp_path):
    said = refusal(tmp_path, name, "--accumulation", "3")
    assert said.startswith("--batch-size must be a multiple of 3 (ranks x")


@pytest.mark.nightly
@BOTH
def test_snapshot_of_no_use_is_one_sentence(name, tmp_path):
    train(tmp_path, 1, STARTER / name, "1", "1", *FAST)
    said = refusal(tmp_path, name, "1", "1", "--workers", "0")
    assert "'batch_size': 256" in said and "'batch_size': 64" in said
    damaged = tmp_path / "snapshot.pt"
    if name == "train_fsdp.py":
        (damaged,) = (tmp_path / "snapshots").glob("step-*/*.distcp")
    damaged.write_bytes(damaged.read_bytes()[:1000])
    said = refusal(tmp_path, name, "1", "1", *FAST, ranks=2)
    assert re.search(r"snapshot\S* is damaged", said), said


@pytest.mark.nightly
@BOTH
def test_other_model_is_named_by_what_differs(name, tmp_path):
    train(tmp_path, 2, STARTER / name, "1", "1", *FAST)
    there = "4" if name == "train_fsdp.py" else "3"
    size = "64" if name == "train_fsdp.py" else "128"
    last = f"nn.Linear({size}, 10)"
    for new, said in (
        (
            f"nn.Linear({size}, 12)",
            f"{there}.weight is (10, {size}), here (12, {size})",
        ),
        (f"nn.GELU(), {last}", f"it has {there}.weight, which this one lacks"),
        (f"nn.Linear({size}, 10, bias=False)", f"it has {there}.bias, which this"),
    ):
        program = changed(tmp_path, name, last=(last, new))
        statuses, _, err = end(start(tmp_path, 2, program, "1", "1", *FAST))
        assert statuses == [2, 2]
        assert "is of another model: " in err and said in err, err


@BOTH
def test_finished_run_says_that_there_is_nothing_to_train(name, tmp_path):
    first = train(tmp_path, 2, STARTER / name, "1", "1", *FAST)
    result = found(r"(validation loss .*)$", first)
    out = train(tmp_path, 2, STARTER / name, "1", "1", *FAST)
    assert out.endswith(f"nothing to train: step 15 of 15 | {result}\n")


@pytest.mark.nightly
def test_half_written_checkpoint_is_not_taken(tmp_path):
    train(tmp_path, 1, STARTER / "train_fsdp.py", "2", "1", *FAST)
    (tmp_path / "snapshots" / "step-30" / ".metadata").unlink()
    out = train(tmp_path, 1, STARTER / "train_fsdp.py", "2", "1", *FAST)
    assert out.startswith("After 15 steps"), out
    assert (tmp_path / "snapshots" / "step-30" / ".metadata").exists()
    (tmp_path / "snapshots" / "step-15" / ".metadata").unlink()
    train(tmp_path, 1, STARTER / "train_fsdp.py", "3", "1", *FAST)
    kept = sorted(path.name for path in (tmp_path / "snapshots").iterdir())
    assert kept == ["step-30", "step-45"]
    (tmp_path / "snapshots" / "step-45").rename(tmp_path / "snapshots" / "step-45.bad")
    out = train(tmp_path, 1, STARTER / "train_fsdp.py", "3", "1", *FAST)
    assert out.startswith("After 30 steps"), out


@pytest.mark.full
@BOTH
def test_only_a_few_snapshots_stay(name, tmp_path):
    train(tmp_path, 1, STARTER / name, "4", "0.5", *FAST)
    folder = tmp_path / "snapshots"
    kept = sorted(os.listdir(folder if folder.exists() else tmp_path))
    assert kept in (["snapshot.pt"], ["step-56", "step-60"])


@pytest.mark.nightly
@pytest.mark.cold("SIGSTOP cannot be passed on to a warm program")
@BOTH
def test_second_run_ends_as_soon_as_it_sees_what_the_first_has_saved(name, tmp_path):
    """As after a requeue that leaves two chains of jobs."""
    fsdp = name == "train_fsdp.py"
    folder = tmp_path / "snapshots" if fsdp else tmp_path
    words = [STARTER / name, "10", "10", *FAST, "--log-every", "1"]
    (second,) = start(tmp_path, 1, *words)
    read_until(second, "step 3 ")  # it will save after step 150
    second.send_signal(signal.SIGSTOP)
    try:
        train(tmp_path, 1, STARTER / name, "1", "0.5", *FAST)
        left = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    finally:
        second.send_signal(signal.SIGCONT)
    statuses, _, err = end([second])
    assert statuses == [2] and "another run has written" in err, err
    assert "end one of the two" in err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == left


@pytest.fixture
def ending(monkeypatch):
    """``ending(name)``: the functions of a starter; rank 0 of 1, which may end."""
    dist = torch.distributed
    monkeypatch.setattr(dist, "broadcast_object_list", lambda box, device: None)
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    monkeypatch.setattr(dist, "barrier", lambda: None)
    monkeypatch.setattr(os, "_exit", sys.exit)
    monkeypatch.setattr(multiprocessing, "active_children", list)
    return lambda name: runpy.run_path(STARTER / name, run_name="starter")


def run_of(names, step):
    """What a snapshot is made of."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters())
    return names["Run"](model, optimizer, torch.amp.GradScaler(enabled=False), step)


def recorded(calls, name, real, *given):
    calls.append(name)
    return real(*given)


def test_save_is_on_the_disk_before_it_gets_the_name(ending, tmp_path, monkeypatch):
    calls = []
    for module, name in ((torch, "save"), (os, "fsync"), (os, "replace")):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, partial(recorded, calls, name, real))
    path = tmp_path / "snapshot.pt"
    names = ending("train_ddp.py")
    names["Snapshot"](path, {}).save(run_of(names, step=7))
    assert calls == ["save", "fsync", "replace"]
    assert torch.load(path)["step"] == 7


def test_save_that_fails_leaves_the_snapshot(ending, tmp_path, monkeypatch, capsys):
    def fill(snapshot, file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(torch, "save", fill)
    path = tmp_path / "snapshot.pt"
    path.write_text("the one before")
    names = ending("train_ddp.py")
    snapshot = names["Snapshot"](path, {})
    snapshot.written = os.path.getmtime(path)
    with pytest.raises(SystemExit) as end:
        snapshot.save(run_of(names, step=7))
    assert end.value.code == 2 and path.read_text() == "the one before"
    (line,) = capsys.readouterr().err.splitlines()
    assert "snapshot.pt, which is unharmed: [Errno 28] No space left" in line


def test_checkpoint_that_fails_ends_all_ranks(ending, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.distributed, "new_group", lambda backend: None)
    checkpoints = ending("train_fsdp.py")["Checkpoints"](tmp_path, {})
    checkpoints.saving = Future()
    checkpoints.saving.set_exception(OSError("No space left on device"))
    with pytest.raises(SystemExit) as end:
        checkpoints.finish()
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot write into" in line and "No space left on device" in line


@BOTH
def test_folder_that_cannot_be_written_is_one_sentence(name, tmp_path):
    (tmp_path / "file").write_text("")
    said = refusal(tmp_path, name, "1", "1", *FAST, "--snapshot", "file/x")
    assert "file/x" in said
