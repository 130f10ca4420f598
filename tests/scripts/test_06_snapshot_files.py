"""src/common/snapshot.py: what kills, second runs and foreign files may cost."""

import argparse
import contextlib
import os
import pickle
from pathlib import Path

import pytest
import torch

from common import snapshot
from common.distributed import BadInput
from tests.in_ranks import assert_right, every_check_in
from tests.scripts.trainings import read
from tools import bench_kills


@every_check_in(Path(__file__).resolve().parent / "ranks_06_checkpoint.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


# -- kills ---------------------------------------------------------------------
def test_kill_at_any_moment_of_saving_leaves_a_complete_snapshot():
    killed, broken = bench_kills.kill_saving(50)
    assert killed == 50 and not broken, broken


def test_previous_snapshot_is_kept_and_nothing_else(tmp_path):
    path = tmp_path / "snapshot.pt"
    (tmp_path / "snapshot.pt.tmp").write_bytes(b"left behind by a killed save")
    (tmp_path / "snapshot.pt.previous").write_bytes(b"an older one")
    for number in range(3):
        snapshot.write_snapshot({"number": number}, path)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["snapshot.pt", "snapshot.pt.previous"]
    assert [read(tmp_path / name)["number"] for name in names] == [2, 1]


def test_snapshot_is_written_without_hard_links(tmp_path, monkeypatch):
    def refuse(*names):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    for number in range(3):
        snapshot.write_snapshot({"number": number}, tmp_path / "snapshot.pt")
    assert [file.name for file in tmp_path.iterdir()] == ["snapshot.pt"]
    assert read(tmp_path / "snapshot.pt")["number"] == 2


def test_second_run_does_not_write_over_the_snapshot_of_the_first(tmp_path, capsys):
    """Whoever saves first continues to save; the other one writes nothing."""
    path = tmp_path / "snapshot.pt"
    args = argparse.Namespace(snapshot=path, total_epochs=9, save_every=1)
    one, two = (snapshot.Run(args, model=torch.nn.Linear(2, 2)) for _ in range(2))
    for _ in range(2):
        one.save()
    for _ in range(2):
        two.save()
    assert not one.not_saved
    assert two.not_saved == f"another run has written {path}: end one of the two"
    assert capsys.readouterr().out.count(two.not_saved) == 2
    kept = one.parts["model"].weight
    assert torch.equal(snapshot.read_snapshot(path)["model"]["weight"], kept)
    one.save()
    assert not one.not_saved
    resumed = snapshot.Run(args, model=torch.nn.Linear(2, 2))
    resumed.save()
    assert not resumed.not_saved


# -- files that are no snapshots -----------------------------------------------
@pytest.fixture
def pair(tmp_path):
    """The path of a snapshot that has a previous one."""
    path = tmp_path / "snapshot.pt"
    for number in range(2):
        snapshot.write_snapshot(bench_kills.content(number), path)
    return path


def refusal(path):
    """What the reader is told; the files must be as they were."""
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(BadInput) as caught:
        snapshot.read_snapshot(path)
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


def test_snapshot_that_is_cut_off_anywhere_is_refused_and_the_previous_one_named(pair):
    whole = pair.read_bytes()
    for length in range(0, len(whole), len(whole) // 49):
        pair.write_bytes(whole[:length])
        told = refusal(pair)
        assert "is damaged" in told and f"mv {pair}.previous {pair}" in told
    os.replace(f"{pair}.previous", pair)
    assert snapshot.read_snapshot(pair)["number"] == 0


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("by", ["pickle", "torch", "old torch"])
def test_code_in_a_file_is_not_run(by, pair):
    sign = pair.with_name("exploded")
    if by == "pickle":
        pair.write_bytes(pickle.dumps({"model": Bomb(sign)}))
    else:
        zipped = by == "torch"
        torch.save(
            {"model": Bomb(sign)},
            pair,
            _use_new_zipfile_serialization=zipped,
        )
    assert "is damaged or is no snapshot" in refusal(pair)
    assert not sign.exists()
    with contextlib.suppress(Exception):
        torch.load(pair, weights_only=False)
    assert sign.exists(), "the bomb does not work: this test would pass without care"


@pytest.mark.parametrize("content", [[1, 2], torch.zeros(3)])
def test_foreign_file_is_refused(content, pair):
    torch.save(content, pair)
    assert "is damaged or is no snapshot" in refusal(pair)


def test_unreadable_snapshot_is_refused(pair, monkeypatch):
    """Permissions would not keep root from reading it."""

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(torch, "load", refuse)
    with pytest.raises(BadInput, match="PermissionError"):
        snapshot.read_snapshot(pair)


def test_unreadable_snapshot_of_somebody_else_is_refused(pair):
    """The same for real: by a process that has no rights to it."""
    pair.chmod(0)
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            snapshot.read_snapshot(pair)
        except BadInput as error:
            os._exit(7 if "PermissionError" in str(error) else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
