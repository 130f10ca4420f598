"""Starting the training scripts from tests, and comparing what they leave."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
LAUNCHED = re.compile(r"^(RANK|LOCAL_|WORLD_SIZE|GROUP_|MASTER_|TORCHELASTIC)")
LIMIT = 300  # seconds; each takes about 10 on an idle machine


def environment(**variables):
    """No GPU, one thread for each rank, no variables of a launcher around us."""
    kept = {k: v for k, v in os.environ.items() if not LAUNCHED.match(k)}
    return kept | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"} | variables


def run(folder, command, **variables):
    """Run to the end; nothing that it started is left behind, even if it hangs."""
    process = subprocess.Popen(
        list(map(str, command)),
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=LIMIT)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def script(folder, name, *arguments, **variables):
    """Run one of the scripts of ``src`` with plain python."""
    return run(folder, [sys.executable, SRC / name, *arguments], **variables)


def torchrun(folder, ranks, *command, **variables):
    """Run ``command`` in so many ranks."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return run(folder, [*start, f"--nproc-per-node={ranks}", *command], **variables)


def sentence(done):
    """The one line by which a command has refused its input."""
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def read(path):
    return torch.load(path, weights_only=True)


def assert_same_bits(left, right, place="snapshot"):
    """Compare nested dicts and lists of tensors without any tolerance."""
    assert type(left) is type(right), place
    if isinstance(left, dict):
        assert left.keys() == right.keys(), place
        for key in left:
            assert_same_bits(left[key], right[key], f"{place}[{key!r}]")
    elif isinstance(left, list):
        assert len(left) == len(right), place
        for number, pair in enumerate(zip(left, right, strict=True)):
            assert_same_bits(*pair, f"{place}[{number}]")
    elif isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype and torch.equal(left, right), place
    else:
        assert left == right, place
