"""Starting the training scripts from tests, and comparing what they leave."""

import contextlib
import os
import sys
from pathlib import Path

import torch

from tests.launched import STANDALONE, run

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
# Of programs whose command line is data.parse_training's: trains in a moment.
SMALL = ["--width", "16", "--snapshot", "snapshot.pt"]
# Milliseconds in a step by which a test makes a rank slow, one try after the other: the
# machine may be busy enough to make another rank as slow as the first of them.
SLOWER = (1000, 4000, 12000)


def program(name):
    """The path of a program or an instrument of ``src``, such as ``18_cost.py``."""
    (path,) = SRC.rglob(name)
    return path


def script(folder, name, *arguments, **variables):
    """Run one of the scripts of ``src`` with plain python."""
    path = program(name)
    small = SMALL if "data.parse_training(" in path.read_text("utf-8") else []
    return run(folder, [sys.executable, path, *small, *arguments], **variables)


def torchrun(folder, ranks, *command, **variables):
    """Run ``command`` in so many ranks."""
    start = [*STANDALONE, f"--nproc-per-node={ranks}"]
    return run(folder, [*start, *command], **variables)


def sentence(done):
    """The one line by which a command has refused its input."""
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@contextlib.contextmanager
def claimed(path):
    """Meanwhile another run, which is this process, saves to ``path``."""
    with open(f"{path}.lock", "w") as file:
        os.lockf(file.fileno(), os.F_TLOCK, 0)
        yield


def read(path):
    return torch.load(path, weights_only=True)


def assert_same_bits(left, right, place="snapshot"):
    """Compare nested dicts and lists of tensors without any tolerance."""
    assert type(left) is type(right), place
    if isinstance(left, dict):
        assert left.keys() == right.keys(), place
        for key in left:
            assert_same_bits(left[key], right[key], f"{place}[{key!r}]")
    elif isinstance(left, (list, tuple)):
        assert len(left) == len(right), place
        for number, pair in enumerate(zip(left, right, strict=True)):
            assert_same_bits(*pair, f"{place}[{number}]")
    elif isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype and torch.equal(left, right), place
    else:
        assert left == right, place
