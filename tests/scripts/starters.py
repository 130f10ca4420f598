"""Runs of src/starter for tests: started, read, ended, and what they leave."""

import os
import re
import signal
import subprocess
import sys

import pytest
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from tests.launched import LIMIT, STANDALONE, environment, free_port
from tests.scripts.trainings import SRC, assert_same_bits

STARTER = SRC / "starter"
BOTH = pytest.mark.parametrize("name", ["train_ddp.py", "train_fsdp.py"])
# their code for it is nearly alike: FULL=1 tries one of them, the night both
BOTH_AT_NIGHT = pytest.mark.parametrize(
    "name", [pytest.param("train_ddp.py", marks=pytest.mark.nightly), "train_fsdp.py"]
)
# the short run tries one of them, FULL=1 both
ALIKE = pytest.mark.parametrize(
    "name", ["train_ddp.py", pytest.param("train_fsdp.py", marks=pytest.mark.full)]
)
SMALL = ["--batch-size", "256", "--workers", "0", "--log-every", "5"]
FAST = [*SMALL, "--warmup-steps", "5", "--learning-rate", "0.01"]


def start(folder, ranks, program, *arguments, folder_of_1=None):
    """Start the ranks of one machine without a launcher: each has its own status."""
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    where["WORLD_SIZE"] = str(ranks)
    return [
        subprocess.Popen(
            [sys.executable, program, *arguments],
            cwd=folder_of_1 if folder_of_1 and rank == 1 else folder,
            env=environment(**where, RANK=str(rank), LOCAL_RANK=str(rank)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for rank in range(ranks)
    ]


def start_torchrun(folder, ranks, program, *arguments):
    command = [*STANDALONE, f"--nproc-per-node={ranks}", "--max-restarts=2", program]
    return subprocess.Popen(
        list(map(str, [*command, *arguments])),
        cwd=folder,
        env=environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


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
    return {"step": step, "model": whole["model"], "optimizer": whole["optimizer"]}


def assert_same_end(left, right):
    """Bit for bit the same model and moments, after the same steps."""
    assert left["step"] == right["step"]
    assert_same_bits(left["model"], right["model"], "model")
    moments = left["optimizer"]["state"], right["optimizer"]["state"]
    assert_same_bits(*moments, "optimizer")
