"""src/06_checkpoint.py and its modules: a resumed run equals one that never stopped,
and no kill, full disk or foreign file costs more than it must."""

import argparse
import contextlib
import json
import os
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from common import data, snapshot
from common.distributed import BadInput
from tests.in_ranks import assert_right, every_check_in
from tests.scripts.trainings import (
    SRC,
    assert_same_bits,
    read,
    run,
    script,
    sentence,
)
from tools import bench_kills

ddp_checkpoint = import_module("06_checkpoint")
requeue = import_module("09_requeue")

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
script = import_module("06_checkpoint")

class CutOff(Exception):
    pass

def train(name, stop_after=None, epochs=2, **options):
    args = argparse.Namespace(
        total_epochs=epochs, save_every=1, batch_size=48, learning_rate=0.05, width=16,
        snapshot=Path(name), metrics=None, save_every_steps=4,
    )
    saves = 0
    save = script.snapshot.Run.save
    def counted(run):
        nonlocal saves
        save(run)
        saves += 1
        if saves == stop_after:
            raise CutOff
    script.snapshot.Run.save = counted
    runs = []
    def report(run, *rest):
        runs.append(run)
    script.data.report = report
    try:
        script.train(args, torch.device("cpu"))
    except CutOff:
        return None
    finally:
        script.snapshot.Run.save = save
    return runs.pop().losses

def run_rank(rank, world_size):
    script.setup(rank, world_size)
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
    states = [state["random"]["cpu"] for state in inside["ranks"]]
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
    ddp_checkpoint.train(args, torch.device("cpu"))
    (run,) = runs
    saved, parts = read(resumed / "inside.pt"), run.parts
    for name in ("model", "optimizer", "scheduler"):
        assert_same_bits(dict(parts[name].state_dict()), dict(saved[name]))
    assert run.counters["steps_run"] == saved["steps_run"] == 8
    losses = [state["loss_sum"] for state in saved["ranks"]]
    assert float(parts["ranks"].loss_sum) == pytest.approx(sum(losses), rel=1e-6)
    # the images still to come are those that the three ranks have not used
    done = run.counters["images_done"]
    order = DistributedSampler(range(1438), 1, 0, seed=ddp_checkpoint.SEED)
    rest = ddp_checkpoint.rest_of_share(1438, 0, done, 0, 1)
    assert rest == list(order)[8 * 48 * 3 :]
    # three states of random numbers do not fit one rank: it has none of them
    states = [state["random"]["cpu"] for state in saved["ranks"]]
    assert not any(torch.equal(torch.get_rng_state(), state) for state in states)


# -- what is left of an epoch ----------------------------------------------------
def deal(size, world_size, epoch, done):
    rest = ddp_checkpoint.rest_of_share
    return [rest(size, epoch, done, rank, world_size) for rank in range(world_size)]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_sampler_from_the_start_is_the_distributed_sampler(world_size):
    for epoch in (0, 5):
        for rank, share in enumerate(deal(22, world_size, epoch, 0)):
            other = DistributedSampler(
                range(22), world_size, rank, seed=ddp_checkpoint.SEED
            )
            other.set_epoch(epoch)
            assert share == list(other)


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_sampler_from_inside_an_epoch_deals_out_the_rest(world_size):
    whole = deal(22, world_size, 1, 0)
    for steps in range(len(whole[0]) + 1):
        rest = deal(22, world_size, 1, steps * world_size)
        assert rest == [share[steps:] for share in whole]


@pytest.mark.parametrize("before, after", [(2, 3), (3, 4), (4, 1), (3, 2)])
def test_every_image_is_used_once_though_the_world_size_changes(before, after):
    for steps in range(6):
        used = [i for share in deal(22, before, 2, 0) for i in share[:steps]]
        rest = [i for share in deal(22, after, 2, steps * before) for i in share]
        padding = -(22 - steps * before) % after
        assert set(used + rest) == set(range(22))
        assert len(used + rest) == 22 + padding


class Augmented(torch.utils.data.Dataset):
    """Images that are drawn anew each time."""

    def __len__(self):
        return 22

    def __getitem__(self, index):
        return torch.rand(())


def augmentations(monkeypatch, program, rank, epoch, done=0, seed=None):
    """What a rank's two workers draw in an epoch; ``seed`` replaces the program's."""
    monkeypatch.setattr(dist, "get_rank", lambda: rank)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    loader = program.make_loader(Augmented(), 1, epoch, done)
    if seed is not None:
        loader.generator.manual_seed(seed)
    workers = DataLoader(loader.dataset, 1, num_workers=2, generator=loader.generator)
    return torch.cat(list(workers)).tolist()


@pytest.mark.parametrize("program", [ddp_checkpoint, requeue])
def test_workers_draw_alike_after_a_resume_and_nowhere_else(program, monkeypatch):
    drawn = {
        (rank, epoch): augmentations(monkeypatch, program, rank, epoch)
        for rank in (0, 1)
        for epoch in (3, 4)
    }
    numbers = [number for numbers in drawn.values() for number in numbers]
    assert len(set(numbers)) == len(numbers) == 44
    fixed = [augmentations(monkeypatch, program, *which, seed=7) for which in drawn]
    assert all(numbers == fixed[0] for numbers in fixed)  # as the page warns
    torch.rand(5)  # the resumed run has drawn other numbers before
    assert augmentations(monkeypatch, program, 1, 4) == drawn[1, 4]
    # inside an epoch they are not those of the run that was never stopped
    assert augmentations(monkeypatch, program, 1, 4, done=8) != drawn[1, 4][4:]


def test_equal_global_batch_on_another_world_size_holds_the_same_images():
    """So gradients differ only in rounding (and in what dropout draws)."""
    for done in (0, 12):
        two, four = deal(48, 2, 3, done), deal(48, 4, 3, done)
        for step in range((48 - done) // 12):
            a = {i for share in two for i in share[6 * step : 6 * step + 6]}
            b = {i for share in four for i in share[3 * step : 3 * step + 3]}
            assert a == b


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
        assert f"mv {pair}.previous {pair}" in refusal(pair)
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


def test_steps_out_of_range_are_refused(tmp_path):
    said = sentence(script(tmp_path, NAME, 1, 1, "--save-every-steps", 0))
    assert "--save-every-steps: '0' is not a whole number above 0" in said


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
