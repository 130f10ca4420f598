"""What docs/lessons/06_checkpoints says about the file of a snapshot, tried out.

How it is written and how it is read. Each test is named after its sentence on the page.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from pickle import UnpicklingError

import pytest
import torch

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from common import snapshot  # noqa: E402
from common.data import make_model  # noqa: E402
from common.snapshot import BadInput, read_snapshot, write_snapshot  # noqa: E402

# Write it wholly, or not at all


def test_torch_save_empties_the_file_first(tmp_path):
    path = tmp_path / "snapshot.pt"
    path.write_bytes(b"old" * 1000)

    class Stop:
        def __reduce__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        torch.save({"a": Stop()}, path)
    assert b"old" not in path.read_bytes()


def number_in(path):
    """The step of a snapshot, "part of 200" if it cannot be read, "" if not there."""
    if not path.exists():
        return ""
    try:
        return str(torch.load(path, weights_only=True)["step"])
    except Exception:
        return "part of 200"


def test_the_names_are_those_of_the_figure(tmp_path, monkeypatch):
    """After each call of write_snapshot, each name holds what the figure shows."""
    path = tmp_path / "snapshot.pt"
    names = [path, tmp_path / "snapshot.pt.tmp", tmp_path / "snapshot.pt.previous"]
    weights = torch.randn(50_000)
    write_snapshot({"step": 100, "weights": weights}, path)
    seen = {"before": [number_in(name) for name in names]}

    def watched(module, function, call):
        original = getattr(module, function)

        def watching(*arguments, **options):
            returned = original(*arguments, **options)
            seen[call(arguments)] = [number_in(name) for name in names]
            return returned

        monkeypatch.setattr(module, function, watching)

    class Stopping:
        """A file like the one that torch.save gets, seen in the middle of writing."""

        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            written = self.file.write(data)
            self.file.flush()
            if len(data) > 10_000:
                seen["torch.save"] = [number_in(name) for name in names]
            return written

    save = torch.save
    monkeypatch.setattr(torch, "save", lambda obj, file: save(obj, Stopping(file)))
    folders = []

    def name_of_sync(arguments):
        folders.append(os.path.isdir(f"/proc/self/fd/{arguments[0]}"))
        return "fsync folder" if folders[-1] else "flush, fsync"

    watched(snapshot.os, "fsync", name_of_sync)
    watched(snapshot.os, "link", lambda _: "link")
    watched(snapshot.os, "replace", lambda _: "replace")
    write_snapshot({"step": 200, "weights": weights}, path)

    figure = (ROOT / "docs" / "figures" / "06_atomic_save.py").read_text()
    rows = re.findall(r'\("([^"]+)", \("([^"]*)", "([^"]*)", "([^"]*)"\)', figure)
    assert [row[0] for row in rows] == list(seen)
    assert {row[0]: list(row[1:]) for row in rows} == seen


def test_replace_between_two_disks_is_an_error(tmp_path):
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second file system to try it on")
    with (
        tempfile.NamedTemporaryFile(dir=other) as there,
        pytest.raises(OSError, match=r"\[Errno 18\] Invalid cross-device link"),
    ):
        os.replace(there.name, tmp_path / "snapshot.pt")


def test_the_one_before_is_kept_without_copying_a_byte(tmp_path):
    path = tmp_path / "snapshot.pt"
    write_snapshot({"step": 1}, path)
    inode = path.stat().st_ino
    write_snapshot({"step": 2}, path)
    assert (tmp_path / "snapshot.pt.previous").stat().st_ino == inode
    assert read_snapshot(path)["step"] == 2


# Read it on every rank


def test_a_file_remembers_the_device_and_needs_map_location(tmp_path):
    code = """
import torch
home = ["cuda:0"]
torch.serialization.register_package(5, lambda _: home[0], lambda *_: None)
torch.save({"a": torch.ones(3)}, "gpu.pt")
home[0] = None
print(torch.load("gpu.pt", map_location="cpu")["a"].tolist())
if torch.cuda.is_available():
    print("CUDA", torch.load("gpu.pt")["a"].device)
else:
    try:
        torch.load("gpu.pt")
    except RuntimeError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    values, complaint = done.stdout.split("\n")[:2]
    assert values == "[1.0, 1.0, 1.0]"
    assert "CUDA" in complaint


class Bomb:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (exec, (f"open({str(self.target)!r}, 'w').close()",))


def test_weights_only_is_the_default_and_keeps_code_from_running(tmp_path):
    path, target = tmp_path / "gift.pt", tmp_path / "exploded"
    torch.save({"model": Bomb(target)}, path)
    for options in ({}, {"weights_only": True}):
        with pytest.raises(Exception, match="Weights only load failed"):
            torch.load(path, **options)
    with pytest.raises(BadInput):
        read_snapshot(path)
    assert not target.exists()
    torch.load(path, weights_only=False)  # the bomb is a real one
    assert target.exists()


def test_a_file_that_is_cut_off_anywhere_cannot_be_opened(tmp_path):
    path = tmp_path / "snapshot.pt"
    torch.save({"model": make_model().state_dict()}, path)
    whole = path.read_bytes()
    for length in [0, 1, *random.Random(0).sample(range(2, len(whole)), 50)]:
        path.write_bytes(whole[:length])
        with pytest.raises((OSError, RuntimeError, EOFError, UnpicklingError)):
            torch.load(path, weights_only=True)


def test_a_flipped_bit_in_a_weight_is_loaded_without_a_word(tmp_path):
    path = tmp_path / "snapshot.pt"
    weights = torch.randn(10_000)
    torch.save({"weights": weights}, path)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1  # the weights are all but a few hundred bytes of it
    path.write_bytes(whole)
    found = torch.load(path, weights_only=True)["weights"]
    assert int((found != weights).sum()) == 1
