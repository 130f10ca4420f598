"""src/common/manifest.py: a checkpoint is hashed while the training continues."""

import json
import threading

import pytest

from common import manifest as module
from common.manifest import Manifest


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "checkpoint-5"
    folder.mkdir()
    (folder / "shard").write_bytes(b"numbers")
    return folder


def kinds(manifest) -> list[str]:
    return [json.loads(line)["kind"] for line in manifest.lines]


def test_training_does_not_wait_for_the_hashes_of_a_checkpoint(
    tmp_path, checkpoint, monkeypatch
):
    monkeypatch.setattr(module, "is_rank_0", lambda: True)
    hashes, read = module.hashes, threading.Event()

    def slow(folder):
        assert read.wait(60)
        return hashes(folder)

    monkeypatch.setattr(module, "hashes", slow)
    manifest = Manifest(tmp_path / "manifest.jsonl")
    manifest.add_checkpoints([checkpoint])
    manifest.add("steps", first=5)
    read.set()
    manifest.add_checkpoints([], wait=True)
    assert kinds(manifest) == ["steps", "checkpoint"]
    line = json.loads(manifest.lines[-1])
    assert line["files"] == hashes(checkpoint)
    assert line["name"] == "checkpoint-5"


def test_other_ranks_read_no_checkpoint(tmp_path, checkpoint, monkeypatch):
    monkeypatch.setattr(module, "is_rank_0", lambda: False)
    monkeypatch.setattr(module, "hashes", lambda folder: pytest.fail("it was read"))
    manifest = Manifest(tmp_path / "manifest.jsonl")
    manifest.add_checkpoints([checkpoint], wait=True)
    assert manifest.lines == []
