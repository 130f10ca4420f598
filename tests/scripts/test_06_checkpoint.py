"""src/06_checkpoint.py: a resumed run equals one that never stopped, and a full disk
or a foreign snapshot costs no training."""

import argparse
import json
import os
import subprocess
import sys
from importlib import import_module

import pytest
import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

from common import data
from tests.scripts.trainings import (
    SRC,
    assert_same_bits,
    read,
    run,
    script,
    sentence,
)

checkpoint = import_module("06_checkpoint")

NAME = "06_checkpoint.py"

# Trains again and again in the same ranks, because starting ranks takes seconds. A
# training is cut off right after its n-th snapshot, as if it had been killed there.
RESUMING = f"""
import argparse, os, shutil, sys
sys.path.insert(0, {str(SRC)!r})
import torch, torch.distributed as dist, torch.multiprocessing as mp
from importlib import import_module
from pathlib import Path
from common.distributed import prepare_spawn
checkpoint = import_module("06_checkpoint")

class CutOff(Exception):
    pass

def train(name, stop_after=None, epochs=2, **options):
    args = argparse.Namespace(
        total_epochs=epochs, save_every=1, batch_size=48, learning_rate=0.05, width=16,
        snapshot=Path(name), metrics=None, save_every_steps=4,
    )
    saves = 0
    save = checkpoint.snapshot.Run.save
    def counted(run):
        nonlocal saves
        save(run)
        saves += 1
        if saves == stop_after:
            raise CutOff
    checkpoint.snapshot.Run.save = counted
    runs = []
    def report(run, *rest):
        runs.append(run)
    checkpoint.data.report = report
    try:
        checkpoint.train(args, torch.device("cpu"))
    except CutOff:
        return None
    finally:
        checkpoint.snapshot.Run.save = save
    return runs.pop().losses

def run_rank(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    whole = train("whole.pt")
    # 10 steps an epoch on 3 ranks: after 4 and 8, at its end, and in the second epoch
    for stop in (1, 2, 3, 4, 6):
        torch.manual_seed(1000 * stop)  # as in a new process, nothing is left over
        assert train(f"cut{{stop}}.pt", stop_after=stop) is None
        if stop == 2 and rank == 0:
            shutil.copy("cut2.pt", "inside.pt")
        dist.barrier()
        losses = train(f"cut{{stop}}.pt")
        assert losses == whole[len(whole) - len(losses):], (stop, losses, whole)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(run_rank, (3,), nprocs=prepare_spawn(3))
"""


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    """The folder in which one training was done whole and five cut off ones resumed."""
    folder = tmp_path_factory.mktemp("resumed")
    (folder / "resuming.py").write_text(RESUMING)
    process = run(folder, [sys.executable, "resuming.py"])
    assert process.returncode == 0, process.stdout + process.stderr
    return folder


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 6])
def test_resumed_run_equals_uninterrupted_run(resumed, stop):
    """To the bit, on three ranks: weights, optimizer, scheduler, position, and the
    random numbers of every rank; cut off at an epoch's end and inside epochs."""
    assert_same_bits(read(resumed / f"cut{stop}.pt"), read(resumed / "whole.pt"))


def test_snapshot_holds_everything_that_the_next_step_depends_on(resumed):
    inside = read(resumed / "inside.pt")
    assert inside["epochs_run"] == 0 and inside["images_done"] == 8 * 48 * 3
    assert inside["model"].keys() == read(resumed / "whole.pt")["model"].keys()
    assert not [key for key in inside["model"] if key.startswith("module.")]
    states = [state["random"] for state in inside["ranks"]]
    assert len(states) == 3 and not torch.equal(states[0], states[1])


def test_resuming_on_another_world_size_trains_the_rest_of_the_epoch(resumed, tmp_path):
    """1152 of 1438 images are done; two ranks do the other 286, in 5 steps."""
    (tmp_path / "snapshot.pt").write_bytes((resumed / "inside.pt").read_bytes())
    options = ["--nprocs", 2, "--batch-size", 32]
    process = script(tmp_path, NAME, 1, 1, *options)
    assert process.returncode == 0, process.stderr
    assert "Resuming from snapshot.pt after 8 steps" in process.stdout
    assert "Epoch 0 | Batch size 32 | Steps 5" in process.stdout
    after, before = read(tmp_path / "snapshot.pt"), read(resumed / "inside.pt")
    assert after["steps_run"] == before["steps_run"] + 5 and after["epochs_run"] == 1
    rate = before["scheduler"]["_last_lr"][0]
    assert after["scheduler"]["_last_lr"][0] == pytest.approx(rate * 0.97)


@pytest.fixture
def alone(tmp_path):
    """A process group of one rank, this process."""
    store = f"file://{tmp_path}/store"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_what_stays_equal_on_another_world_size(resumed, alone, monkeypatch):
    """From three ranks inside an epoch to one: the table on the page."""
    torch.manual_seed(123)
    args = argparse.Namespace(
        total_epochs=0,
        batch_size=48,
        width=16,
        learning_rate=0.05,
        save_every=1,
        save_every_steps=None,
        snapshot=resumed / "inside.pt",
    )
    runs = []
    monkeypatch.setattr(data, "report", lambda run, *rest: runs.append(run))
    checkpoint.train(args, torch.device("cpu"))
    (run,) = runs
    saved, parts = read(resumed / "inside.pt"), run.parts
    for name in ("model", "optimizer", "scheduler"):
        assert_same_bits(dict(parts[name].state_dict()), dict(saved[name]))
    assert run.counters["steps_run"] == saved["steps_run"] == 8
    losses = [state["loss_sum"] for state in saved["ranks"]]
    assert float(parts["ranks"].loss_sum) == pytest.approx(sum(losses), rel=1e-6)
    # the images still to come are those that the three ranks have not used
    done = run.counters["images_done"]
    order = DistributedSampler(range(1438), 1, 0, seed=checkpoint.SEED)
    rest = checkpoint.rest_of_share(1438, 0, done, 0, 1)
    assert rest == list(order)[8 * 48 * 3 :]
    # three states of random numbers do not fit one rank: it has none of them
    states = [state["random"] for state in saved["ranks"]]
    assert not any(torch.equal(torch.get_rng_state(), state) for state in states)


def test_steps_out_of_range_are_refused(tmp_path):
    said = sentence(script(tmp_path, NAME, 1, 1, "--save-every-steps", 0))
    assert "--save-every-steps: '0' is not a whole number above 0" in said


@pytest.mark.nightly
def test_training_learns_the_digits_in_spite_of_interruptions(tmp_path):
    """Two runs of one training; the second goes on where the first ended."""
    options = ["--nprocs", 2, "--batch-size", 16, "--metrics", "metrics.json"]
    for epochs in (3, 6):
        process = script(tmp_path, NAME, epochs, 3, *options)
        assert process.returncode == 0, process.stderr
    assert "Resuming from snapshot.pt after 135 steps" in process.stdout
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.95 and metrics["total"] == 359
    assert (metrics["world_size"], metrics["epochs"]) == (2, 6)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["metrics.json", "snapshot.pt", "snapshot.pt.previous"]


def test_folder_in_the_place_of_the_snapshot_is_refused(tmp_path):
    (tmp_path / "snapshot.pt").mkdir()
    assert "snapshot.pt is a folder" in sentence(script(tmp_path, NAME, 1, 1))


def test_snapshot_of_another_model_is_one_sentence_from_all_ranks(resumed, tmp_path):
    snapshot = read(resumed / "whole.pt")
    snapshot["model"]["0.weight"] = torch.zeros(3, 3)
    torch.save(snapshot, tmp_path / "snapshot.pt")
    before = (tmp_path / "snapshot.pt").read_bytes()
    said = sentence(script(tmp_path, NAME, 3, 1, "--nprocs", 3))
    assert "snapshot.pt is a snapshot of another training: move it away" in said
    assert (tmp_path / "snapshot.pt").read_bytes() == before


# -- a full disk ---------------------------------------------------------------
@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 kB: a snapshot has 95 kB, so two fit, and a third does not."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk takes root: run the tests as root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk_costs_a_snapshot_but_not_the_training(small_disk):
    process = script(small_disk, NAME, 4, 1, "--nprocs", 2)
    assert process.returncode == 2, process.stderr
    assert "Test accuracy" in process.stdout  # it went on to the end
    assert process.stdout.count("Continuing without a snapshot: ") == 2
    said = [x for x in process.stderr.splitlines() if x.startswith(NAME)]
    assert len(said) == 1 and "cannot write the snapshot snapshot.pt" in said[0]
    assert "Traceback" not in process.stderr
    names = sorted(file.name for file in small_disk.iterdir())
    assert names == ["snapshot.pt", "snapshot.pt.previous"]
    assert [read(small_disk / name)["epochs_run"] for name in names] == [2, 1]
