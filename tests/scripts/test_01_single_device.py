"""src/01_single_device.py and 01_profile.py: what they print, save and refuse."""

import fcntl
import json
import os
import pty
import re
import resource
import struct
import subprocess
import sys
import termios
from importlib import import_module
from pathlib import Path

import pytest
import torch

from tests.scripts.trainings import SMALL, assert_same_bits, read

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from common import data, snapshot  # noqa: E402

single_device = import_module("01_single_device")

EPOCH = re.compile(r"^\[cpu\] Epoch (\d+) \| Batch size (\d+) \| Steps (\d+)$", re.M)
COUNTERS = {"epochs_run", "steps_run", "images_done"}
KEYS = COUNTERS | {"model", "optimizer", "random"}


def train(folder, *arguments, program="01_single_device.py", **settings):
    """Run the script in ``folder`` to its end; no GPU, one thread."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    settings = {"capture_output": True, "text": True, "timeout": 120} | settings
    return subprocess.run(
        [
            sys.executable,
            *(ROOT / "src").rglob(program),
            *(SMALL if program == "01_single_device.py" else []),
            *map(str, arguments),
        ],
        cwd=folder,
        env=environment,
        **settings,
    )


@pytest.fixture
def train_here(monkeypatch, capsys):
    """The same without a new process, which takes seconds to import torch."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def run(folder, *arguments):
        monkeypatch.chdir(folder)
        words = [*SMALL, *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", ["01_single_device.py", *words])
        status = 0
        try:
            single_device.main()
        except SystemExit as end:
            status = end.code
        return subprocess.CompletedProcess(arguments, status, *capsys.readouterr())

    yield run
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """(folder, process) of 10 epochs in one run, with a snapshot every 5."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    options = ["--metrics", "metrics.json"]
    return folder, train(folder, 10, 5, *options)


# -- what it prints and writes -------------------------------------------------
def test_training_learns_the_digits(uninterrupted):
    folder, process = uninterrupted
    assert process.returncode == 0, process.stderr
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.95
    first, last = re.search(r"Loss ([\d.]+) -> ([\d.]+)", process.stdout).groups()
    assert float(last) < 0.2 * float(first)
    assert abs(metrics["loss"] - float(last)) < 1e-4


def test_each_epoch_prints_one_line(uninterrupted):
    _, process = uninterrupted
    lines = EPOCH.findall(process.stdout)
    assert lines == [(str(epoch), "32", "45") for epoch in range(10)]


def test_no_progress_bar_without_a_terminal(uninterrupted):
    assert uninterrupted[1].stderr == ""


def test_progress_bar_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    rows_and_columns = struct.pack("HHHH", 24, 80, 0, 0)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, rows_and_columns)
    process = train(tmp_path, 1, 5, capture_output=False, stderr=theirs, stdout=-1)
    os.close(theirs)
    assert process.returncode == 0
    assert b"1/1" in os.read(ours, 10_000)
    os.close(ours)


def test_metrics_are_exact_and_complete(uninterrupted):
    folder, _ = uninterrupted
    metrics = json.loads((folder / "metrics.json").read_text())
    model = data.make_model().eval()
    model.load_state_dict(read(folder / "snapshot.pt")["model"])
    images, labels = data.load_digits_split()[1].tensors
    with torch.no_grad():
        correct = int((model(images).argmax(dim=1) == labels).sum())
    assert metrics["correct"] == correct
    assert metrics["total"] == len(labels) == 359
    assert metrics["accuracy"] == correct / 359
    assert (metrics["world_size"], metrics["epochs"]) == (1, 10)
    assert metrics["samples_per_s"] > 0


def test_profile_shows_where_the_time_goes(tmp_path):
    process = train(tmp_path, 1, program="01_profile.py")
    assert "of 359)" in process.stdout
    rows = re.findall(r"^(\w+) .* ([\d.]+)%$", process.stdout, re.M)
    assert [name for name, _ in rows] == ["data", "forward", "backward", "step"]
    assert abs(sum(float(share) for _, share in rows) - 100) < 0.5


def test_timer_counts_only_the_wait_for_items(monkeypatch):
    clock = iter(range(100))
    profile = import_module("instruments.01_profile")
    monkeypatch.setattr(profile.time, "perf_counter", lambda: next(clock))
    timer = profile.StepTimer(torch.device("cpu"))
    for _ in timer.each("data", "ab"):
        with timer("forward"):
            pass
    assert timer.seconds == {"data": 2, "forward": 2}
    assert timer.counts == {"data": 2, "forward": 2}
    assert "50.0%" in timer.table()


# -- snapshots -----------------------------------------------------------------
@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The snapshot file of a run that ended after 5 of 10 epochs."""
    folder = tmp_path_factory.mktemp("half")
    assert train(folder, 5, 5).returncode == 0
    return folder / "snapshot.pt"


@pytest.fixture
def copy_of_half(half, tmp_path):
    copy = tmp_path / "snapshot.pt"
    copy.write_bytes(half.read_bytes())
    return copy


def test_resumed_run_equals_uninterrupted_run(uninterrupted, copy_of_half):
    process = train(copy_of_half.parent, 10, 5)
    assert process.returncode == 0, process.stderr
    assert "Resuming from snapshot.pt after 5 epochs" in process.stdout
    assert [epoch for epoch, _, _ in EPOCH.findall(process.stdout)] == list("56789")
    whole, resumed = read(uninterrupted[0] / "snapshot.pt"), read(copy_of_half)
    assert whole.keys() == KEYS
    assert_same_bits(whole, resumed)


@pytest.mark.parametrize(
    "part",
    [
        "optimizer",
        pytest.param("cpu", marks=pytest.mark.nightly),
        pytest.param("loader", marks=pytest.mark.nightly),
    ],
)
def test_every_part_of_the_snapshot_is_needed(
    part, half, uninterrupted, tmp_path, train_here
):
    """Without one of them, the resumed run would not be the same."""
    altered = read(half)
    other = torch.Generator().manual_seed(123).get_state()
    if part == "optimizer":
        altered["optimizer"]["state"] = {}
    else:
        altered["random"][part] = other
    torch.save(altered, tmp_path / "snapshot.pt")
    assert train_here(tmp_path, 10, 5).returncode == 0
    resumed = read(tmp_path / "snapshot.pt")["model"]
    whole = read(uninterrupted[0] / "snapshot.pt")["model"]
    assert not all(torch.equal(resumed[key], whole[key]) for key in whole)


def test_finished_training_is_not_repeated(half, train_here):
    before = half.read_bytes()
    process = train_here(half.parent, 5, 5, "--metrics", "metrics.json")
    assert process.returncode == 0
    assert "Nothing to train: 5 epochs are already run" in process.stdout
    assert not EPOCH.search(process.stdout)
    metrics = json.loads((half.parent / "metrics.json").read_text())
    assert (metrics["loss"], metrics["samples_per_s"]) == (None, None)
    assert metrics["epochs"] == 5 and metrics["total"] == 359
    assert half.read_bytes() == before


def test_snapshot_survives_a_failed_save(copy_of_half):
    """A full disk, here: no file of more than 20 KiB may be written."""
    before = copy_of_half.read_bytes()
    limit = (20 * 1024, 20 * 1024)
    process = train(
        copy_of_half.parent,
        6,
        1,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert_one_line(process, "cannot write the snapshot snapshot.pt", "unharmed")
    assert "Continuing without a snapshot" in process.stdout
    assert "Test accuracy" in process.stdout, "a full disk must not end the training"
    assert copy_of_half.read_bytes() == before
    assert [path.name for path in copy_of_half.parent.iterdir()] == ["snapshot.pt"]


def test_snapshot_survives_an_interruption_at_any_point(copy_of_half, monkeypatch):
    before = copy_of_half.read_bytes()

    def stop(*_):
        raise KeyboardInterrupt

    for name in ("torch.save", "os.fsync", "os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(name, stop)
            with pytest.raises(KeyboardInterrupt):
                snapshot.write_snapshot({"epochs_run": 6}, copy_of_half)
        assert copy_of_half.read_bytes() == before, name


# -- bad input -----------------------------------------------------------------
def assert_one_line(process, *words):
    assert process.returncode == 2, process.stdout + process.stderr
    assert process.stderr.count("\n") == 1, process.stderr
    assert process.stderr.startswith("01_single_device.py: error: ")
    for word in words:
        assert word in process.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["TOTAL_EPOCHS", "SAVE_EVERY"]),
        (["0", "5"], ["TOTAL_EPOCHS", "'0'", "above 0"]),
        (["-3", "5"], ["TOTAL_EPOCHS", "'-3'", "above 0"]),
        (["10", "2.5"], ["SAVE_EVERY", "'2.5'", "whole number"]),
        (["10", "5", "--batch-size", "0"], ["--batch-size", "'0'"]),
        (["10", "5", "--learning-rate", "nan"], ["--learning-rate", "'nan'"]),
        (
            ["10", "5", "--snapshot", "no/such.pt"],
            ["folder no", "create it"],
        ),
        (["10", "5", "--metrics", "."], ["--metrics", "is a folder"]),
        (["10", "5", "--snapshot", "/proc/x.pt"], ["--snapshot", "/proc", "cannot"]),
    ],
)
def test_bad_argument_is_one_line(arguments, words, tmp_path, train_here):
    assert_one_line(train_here(tmp_path, *arguments), *words)
    assert list(tmp_path.iterdir()) == []


def test_bad_argument_ends_the_process_with_status_2(tmp_path):
    assert_one_line(train(tmp_path, "ten", "5"), "TOTAL_EPOCHS", "'ten'")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["is damaged"]),
        (b"not a snapshot\n", ["is damaged"]),
        ([1, 2], ["is damaged or is no snapshot"]),
        ({"other": torch.zeros(3)}, ["is a snapshot of another training"]),
        ({"model": {}}, ["is a snapshot of another training"]),
    ],
    ids=["empty", "text", "list", "other dict", "other model"],
)
def test_foreign_snapshot_is_one_line(content, words, tmp_path, train_here):
    path = tmp_path / "snapshot.pt"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(
        content, path
    )
    before = path.read_bytes()
    process = train_here(tmp_path, 10, 5)
    assert_one_line(process, "snapshot.pt", "choose another --snapshot", *words)
    assert path.read_bytes() == before


def test_pickle_bomb_is_one_line_and_does_not_explode(tmp_path, train_here):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    torch.save({"model": Bomb()}, tmp_path / "snapshot.pt")
    assert_one_line(train_here(tmp_path, 10, 5), "snapshot.pt", "is damaged")
    assert not (tmp_path / "exploded").exists()


def test_help_names_units_and_defaults(tmp_path, train_here):
    process = train_here(tmp_path, "--help")
    assert process.returncode == 0
    text = " ".join(process.stdout.split())
    for words in ("TOTAL_EPOCHS", "epochs between", "images per step", "default: 32"):
        assert words in text
