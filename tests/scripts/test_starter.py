"""src/starter: the two files to copy, run as they are and with their places changed."""

import ast
import math
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import time

import pytest
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from tests.scripts.trainings import LIMIT, SRC, assert_same_bits, environment
from tools.bench_kills import TORCHRUN, children

STARTER = SRC / "starter"
LINES = {"train_ddp.py": 250, "train_fsdp.py": 290}
BOTH = pytest.mark.parametrize("name", LINES)
SMALL = ["--batch-size", "256", "--workers", "0", "--log-every", "5"]
FAST = [*SMALL, "--warmup-steps", "5", "--learning-rate", "0.01"]


# Starting them


def start(folder, ranks, program, *arguments):
    """Start the ranks of one machine without a launcher: each has its own status."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
    return [
        subprocess.Popen(
            [sys.executable, program, *arguments],
            cwd=folder,
            env=environment(**where, RANK=str(rank), LOCAL_RANK=str(rank)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for rank in range(ranks)
    ]


def end(processes, limit=LIMIT):
    """Statuses of all ranks, what rank 0 printed, the errors of all."""
    done = []
    try:
        for process in processes:
            done.append(process.communicate(timeout=limit))
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    statuses = [process.returncode for process in processes]
    return statuses, done[0][0], "".join(err for _, err in done)


def train(folder, ranks, program, *arguments):
    statuses, out, err = end(start(folder, ranks, program, *arguments))
    assert statuses == [0] * ranks, err
    return out


def read_until(process, beginning):
    """Read what a rank prints up to a line that begins so; returns that line."""
    for line in process.stdout:
        if line.startswith(beginning):
            return line
    pytest.fail(f"no line begins with {beginning!r}: {process.communicate()}")


def found(pattern, text):
    match = re.search(pattern, text, re.M)
    assert match, text
    return match[1]


def changed(folder, name, **changes):
    """A copy with some of its places changed, as its user does."""
    text = (STARTER / name).read_text()
    for old, new in changes.values():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / name).write_text(text)
    return folder / name


def state(folder, name):
    """Step, model and optimizer of the newest snapshot of a run in this folder."""
    if name == "train_ddp.py":
        return torch.load(folder / "snapshot.pt", weights_only=True)
    step = max(int(p.name[5:]) for p in (folder / "snapshots").iterdir())
    dcp_to_torch_save(folder / "snapshots" / f"step-{step}", folder / "whole.pt")
    whole = torch.load(folder / "whole.pt")
    model, optimizer = whole["model_state_dict"], whole["optim_state_dict"]
    return {"step": step, "model": model, "optimizer": optimizer}


def assert_same_end(left, right):
    """Bit for bit the same model and moments, after the same steps."""
    assert left["step"] == right["step"]
    assert_same_bits(left["model"], right["model"], "model")
    moments = left["optimizer"]["state"], right["optimizer"]["state"]
    assert_same_bits(*moments, "optimizer")


# The files


@BOTH
def test_one_file_needs_only_torch_and_marks_three_places(name):
    text = (STARTER / name).read_text()
    assert len(text.splitlines()) <= LINES[name]
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
    model = (module.get("make_model") or module["Model"])().eval()
    model.load_state_dict(state(tmp_path, name)["model"])
    points, classes = zip(*module["make_datasets"]()[1], strict=True)
    with torch.no_grad():
        batch = [torch.stack(points), torch.stack(classes)]
        assert abs(printed - module["loss_function"](model, batch).item()) < 2e-6


def test_rate_rises_to_the_given_one_and_falls_to_a_tenth(tmp_path):
    """Seen in the last steps of a run that is still warming up and of a longer one."""
    rates = []
    for epochs, warmup in (("1", "29"), ("2", "10")):
        folder = tmp_path / epochs
        folder.mkdir()
        options = [*FAST[:-4], "--warmup-steps", warmup, "--learning-rate", "0.01"]
        train(folder, 1, STARTER / "train_ddp.py", epochs, "1", *options)
        groups = state(folder, "train_ddp.py")["optimizer"]["param_groups"]
        rates.append(groups[0]["lr"])
    cosine = 0.55 + 0.45 * math.cos(math.pi * 19 / 20)
    assert rates == pytest.approx([0.01 * 15 / 30, 0.01 * cosine])


# Ends and resumptions

NOISY = """
class Noisy(data.TensorDataset):
    def __getitem__(self, index):
        points, classes = super().__getitem__(index)
        return points + 0.1 * torch.randn(32), classes


# (2) your model"""
LONG = ["4", "1", "--batch-size", "60", "--accumulation", "2", "--workers", "1"]
LONG += ["--log-every", "5"]
STEPS = 4 * (4001 // 60)


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
    out = train(folder, ranks, program, *arguments)
    assert int(found(r"^After (\d+) steps", out)) > 0
    assert_same_end(state(folder, program.name), expected)


@pytest.mark.full
@pytest.mark.cold("ranks and their data workers are sent signals")
@BOTH
@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_signal_saves_ends_with_0_and_resumes_exactly(
    name, number, tmp_path, uninterrupted
):
    """SIGUSR1 to one rank; SIGTERM to all processes, data workers included."""
    program, expected = uninterrupted(name)
    processes = start(tmp_path, 3, program, *LONG)
    read_until(processes[0], "step 20 ")
    if number == signal.SIGUSR1:
        os.kill(processes[1].pid, number)
    else:
        for process in processes:
            os.killpg(process.pid, number)
    statuses, _, err = end(processes)
    assert statuses == [0, 0, 0], err
    assert 20 <= state(tmp_path, name)["step"] < STEPS
    assert_resumes_to(expected, tmp_path, 3, program, *LONG)


@pytest.mark.full
@pytest.mark.cold("a rank among the processes below its launcher is killed")
@BOTH
def test_killed_rank_is_started_again_and_ends_alike(name, tmp_path, uninterrupted):
    program, expected = uninterrupted(name)
    command = [*TORCHRUN, "--nproc-per-node=3", "--max-restarts=2", program, *LONG]
    process = subprocess.Popen(
        list(map(str, command)),
        cwd=tmp_path,
        env=environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        read_until(process, "step 100 ")
        ranks = [pid for pid in children(process.pid) if children(pid)]
        os.kill(ranks[-1], signal.SIGKILL)
        out, _ = process.communicate(timeout=LIMIT)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, out
    assert re.search(r"^After (66|132|198) steps", out, re.M), out
    assert_same_end(state(tmp_path, name), expected)


@pytest.mark.full
@pytest.mark.cold("all processes are killed while they save")
@BOTH
def test_kill_in_a_save_leaves_the_snapshot_before(name, tmp_path):
    """Saved in every step, so that most of the time a save is under way."""
    every_step = ["6", "0.001", *FAST]
    for _ in range(3):
        processes = start(tmp_path, 2, STARTER / name, *every_step)
        read_until(processes[0], "step ")
        time.sleep(0.2)
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
        end(processes)
    out = train(tmp_path, 2, STARTER / name, *every_step)
    assert int(found(r"^After (\d+) steps", out)) > 0
    assert state(tmp_path, name)["step"] == 6 * (4001 // 256)


# Refusals


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


@pytest.mark.full
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
    assert re.search(r"snapshot\S* is damaged or of another model", said), said


@pytest.mark.full
def test_half_written_checkpoint_is_not_taken(tmp_path):
    train(tmp_path, 1, STARTER / "train_fsdp.py", "2", "1", *FAST)
    (tmp_path / "snapshots" / "step-30" / ".metadata").unlink()
    out = train(tmp_path, 1, STARTER / "train_fsdp.py", "2", "1", *FAST)
    assert out.startswith("After 15 steps"), out


@pytest.mark.full
@BOTH
def test_only_a_few_snapshots_stay(name, tmp_path):
    train(tmp_path, 1, STARTER / name, "4", "0.5", *FAST)
    folder = tmp_path / "snapshots"
    kept = sorted(os.listdir(folder if folder.exists() else tmp_path))
    assert kept in (["snapshot.pt"], ["step-56", "step-60"])


@BOTH
def test_folder_that_cannot_be_written_is_one_sentence(name, tmp_path):
    (tmp_path / "file").write_text("")
    said = refusal(tmp_path, name, "1", "1", *FAST, "--snapshot", "file/x")
    assert "file/x" in said
