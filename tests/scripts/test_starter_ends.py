"""src/starter: runs that are stopped or killed, and resumed bit for bit."""

import contextlib
import os
import re
import shutil
import signal
import time

import pytest

from tests.launched import LIMIT
from tests.scripts.starters import (
    ALIKE,
    BOTH,
    BOTH_AT_NIGHT,
    FAST,
    STARTER,
    assert_same_end,
    changed,
    end,
    found,
    read_until,
    start,
    start_torchrun,
    state,
    train,
)
from tools.bench_kills import children

NOISY = """
class Noisy(data.TensorDataset):
    def __getitem__(self, index):
        points, classes = super().__getitem__(index)
        return points + 0.1 * torch.randn(32), classes


# (2) your model"""
LONG = ["4", "1", "--batch-size", "360", "--accumulation", "2", "--workers", "2"]
LONG += ["--log-every", "5"]
STEPS = 4 * (4001 // 360)  # 11 in each epoch


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """``uninterrupted(name)``: (program with random augmentation, how it ends)."""
    known = {}

    def get(name):
        if name not in known:
            folder = tmp_path_factory.mktemp("whole")
            program = changed(
                folder,
                name,
                data=("data.TensorDataset(points", "Noisy(points"),
                noisy=("# (2) your model", NOISY),
            )
            train(folder, 3, program, *LONG)
            known[name] = program, state(folder, name)
        return known[name]

    return get


def assert_resumes_to(expected, folder, ranks, program, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLD_PYTHON", raising=False)  # no signals any more
        out = train(folder, ranks, program, *arguments)
    assert int(found(r"^After (\d+) steps", out)) > 0
    assert_same_end(state(folder, program.name), expected)


TO_A_GROUP = pytest.mark.cold("a group's signal misses the forks of a warm program")


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("train_ddp.py", signal.SIGUSR1),
        pytest.param(
            "train_ddp.py", signal.SIGTERM, marks=[TO_A_GROUP, pytest.mark.nightly]
        ),
        pytest.param("train_fsdp.py", signal.SIGTERM, marks=TO_A_GROUP),
    ],
)
def test_signal_saves_ends_with_0_and_resumes_exactly(
    name, number, tmp_path, uninterrupted
):
    """SIGUSR1 to one rank; SIGTERM to all processes, data workers included."""
    program, expected = uninterrupted(name)
    processes = start(tmp_path, 3, program, *LONG)
    read_until(processes[0], "step 15 ")
    if number == signal.SIGUSR1:
        os.kill(processes[1].pid, number)
    else:
        for process in processes:
            os.killpg(process.pid, number)
    statuses, _, err = end(processes)
    assert statuses == [0, 0, 0], err
    assert 15 <= state(tmp_path, name)["step"] < STEPS
    assert_resumes_to(expected, tmp_path, 3, program, *LONG)


@pytest.mark.full
@pytest.mark.cold("a rank among the processes below its launcher is killed")
@BOTH_AT_NIGHT
def test_killed_rank_is_started_again_and_ends_alike(name, tmp_path, uninterrupted):
    program, expected = uninterrupted(name)
    process = start_torchrun(tmp_path, 3, program, *LONG)
    try:
        read_until(process, "step 15 ")
        ranks = [pid for pid in children(process.pid) if children(pid)]
        os.kill(ranks[-1], signal.SIGKILL)
        out, _ = process.communicate(timeout=LIMIT)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, out
    assert "forcefully exiting" not in out, "the other ranks did not end by themselves"
    assert re.search(r"^After (11|22|33) steps", out, re.M), out
    assert_same_end(state(tmp_path, name), expected)


@pytest.mark.nightly
@pytest.mark.cold("the launcher is killed, and its ranks lose their parent")
@BOTH
def test_ranks_of_a_killed_torchrun_save_and_end(name, tmp_path, uninterrupted):
    program, expected = uninterrupted(name)
    process = start_torchrun(tmp_path, 3, program, *LONG)
    try:
        read_until(process, "step 15 ")
        process.kill()
        process.communicate(timeout=LIMIT)  # until no rank holds the pipe
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert 15 <= state(tmp_path, name)["step"] < STEPS
    assert_resumes_to(expected, tmp_path, 3, program, *LONG)


@pytest.mark.nightly
@BOTH
def test_rank_0_decides_for_all_what_is_resumed(name, tmp_path):
    """Rank 1 sees other snapshots, as on a node that lags behind."""
    train(tmp_path, 2, STARTER / name, "1", "1", *FAST)
    whole = shutil.copytree(tmp_path, tmp_path / "whole")
    train(whole, 2, STARTER / name, "2", "1", *FAST)
    other = tmp_path / "other"
    (other / "snapshots" / "step-99").mkdir(parents=True)
    (other / "snapshots" / "step-99" / ".metadata").touch()
    (other / "snapshots" / "step-15").symlink_to(tmp_path / "snapshots" / "step-15")
    ranks = start(tmp_path, 2, STARTER / name, "2", "1", *FAST, folder_of_1=other)
    statuses, out, err = end(ranks)
    assert statuses == [0, 0], err
    assert out.startswith("After 15 steps") and "step 30 of 30 | saved" in out
    if name == "train_ddp.py":  # a checkpoint of FSDP now lies in two folders
        assert_same_end(state(tmp_path, name), state(whole, name))


def saved(folder):
    """The complete snapshots: train_ddp.py has one, train_fsdp.py a folder of them."""
    return [*folder.glob("snapshot.pt"), *folder.glob("snapshots/*/.metadata")]


@pytest.mark.nightly
@BOTH
def test_kill_in_a_save_leaves_the_snapshot_before(name, tmp_path):
    """Saved in every step, so that most of the time a save is under way."""
    every_step = ["6", "0.001", *FAST]
    for _ in range(3):
        processes = start(tmp_path, 2, STARTER / name, *every_step)
        read_until(processes[0], "step ")
        end_of_wait = time.monotonic() + LIMIT
        while not saved(tmp_path) and time.monotonic() < end_of_wait:
            time.sleep(0.02)  # the first one: without it, nothing can be resumed
        time.sleep(0.2)
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
        end(processes)
    out = train(tmp_path, 2, STARTER / name, *every_step)
    assert int(found(r"^After (\d+) steps", out)) > 0
    assert state(tmp_path, name)["step"] == 6 * (4001 // 256)


# What a user writes wrongly: place -> (text, what stands there instead, the last line)
OWN_ERRORS = {
    "model": (
        "nn.Linear(32, ",
        "nn.Linear(31, ",
        r"RuntimeError: mat1 and mat2 shapes .*",
    ),
    "loss": (
        "return nn.functional",
        "assert False, 'in my loss'; return nn.functional",
        "AssertionError: in my loss",
    ),
    "metric": (
        "outputs.argmax(1)",
        "outputs.argmax(7)",
        "IndexError: Dimension out .*",
    ),
    "batch": (
        "return data.default_collate(samples)",
        "return {}['in a worker']",
        "KeyError: 'in a worker'",
    ),
    "data": ("range(4001)), ", "range(1 // 0)), ", "ZeroDivisionError: .*"),
}


@ALIKE
@pytest.mark.parametrize(
    "place",
    [
        "model",
        *(pytest.param(o, marks=pytest.mark.nightly) for o in list(OWN_ERRORS)[1:]),
    ],
)
@pytest.mark.cold("how Python ends is what is tested")
def test_own_error_is_the_last_thing_printed(name, place, tmp_path):
    old, new, last = OWN_ERRORS[place]
    program = changed(tmp_path, name, mistake=(old, new))
    options = ["--batch-size", "500", "--workers", "2"]
    statuses, _, err = end(start(tmp_path, 1, program, "1", "1", *options))
    assert statuses == [1]
    lines = [line for line in err.splitlines() if line.strip("^ ")]
    assert re.fullmatch(rf"(\[rank0\]: )?{last}", lines[-1]), err
    assert "killed by signal" not in err


@pytest.mark.nightly
@pytest.mark.cold("how Python ends is what is tested")
@BOTH
def test_torchrun_repeats_the_own_error_at_the_end(name, tmp_path):
    old, new, last = OWN_ERRORS["model"]
    program = changed(tmp_path, name, mistake=(old, new))
    process = start_torchrun(tmp_path, 2, program, "1", "1", "--workers", "2")
    out, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert re.search(last, out.rpartition("Root Cause")[2]), out
    assert "killed by signal" not in out


@pytest.mark.nightly
@pytest.mark.cold("Ctrl-C is sent to a group of processes")
@BOTH
def test_ctrl_c_ends_the_ranks_and_their_workers(name, tmp_path):
    options = ["500", "1", "--workers", "2", "--log-every", "5"]
    (process,) = start(tmp_path, 1, STARTER / name, *options)
    read_until(process, "step 5 ")
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, _, err = end([process])
    assert err.splitlines()[-1].endswith("KeyboardInterrupt"), err
    assert workers and not any(os.path.exists(f"/proc/{pid}") for pid in workers)
