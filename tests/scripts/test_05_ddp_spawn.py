"""src/05_ddp_spawn.py: what it prints, learns, leaves and refuses."""

import fcntl
import json
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import termios

import pytest

from common import data, distributed
from common.distributed import BadInput
from tests.launched import environment
from tests.scripts.trainings import SMALL, SRC, read, script, sentence

NAME = "05_ddp_spawn.py"
LINES = re.compile(
    r"\[rank 0 of 3\] Epoch \d+ \| Batch size 16 \| Steps 30"
    r"|1438 training images on 3 ranks, each on CPU, 1 thread, backend gloo, .*"
    r"|Snapshot of \d epochs in snapshot.pt"
    r"|Loss \d+\.\d+ -> \d+\.\d+ \| [\d,]+ samples/s"
    r"|Test accuracy 9\d\.\d+% \(3\d\d of 359\)"
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(folder, process) of 6 epochs on 3 ranks, with a snapshot every 3."""
    folder = tmp_path_factory.mktemp("trained")
    options = ["--nprocs", 3, "--batch-size", 16, "--metrics", "metrics.json"]
    return folder, script(folder, NAME, 6, 3, *options)


def test_one_rank_speaks_and_its_lines_are_whole(trained):
    _, process = trained
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""  # no bar without a terminal
    strange = [x for x in process.stdout.splitlines() if not LINES.fullmatch(x)]
    assert not strange, strange
    assert process.stdout.count("] Epoch") == 6


def test_one_bar_for_all_ranks_and_only_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    rows_and_columns = struct.pack("HHHH", 24, 80, 0, 0)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, rows_and_columns)
    subprocess.run(
        [sys.executable, str(SRC / NAME), *SMALL, "1", "1", "--nprocs", "3"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        timeout=300,
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "1/1 [" in shown
    assert shown.count("\n") == 1, f"a bar ends with a new line: {shown!r}"


def test_training_learns_the_digits(trained):
    folder, _ = trained
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.95 and metrics["loss"] < 0.2
    assert metrics["world_size"] == 3 and metrics["epochs"] == 6
    assert metrics["samples_per_s"] > 0


def test_accuracy_is_exact_in_spite_of_padding(trained):
    folder, _ = trained
    model = data.make_model()
    model.load_state_dict(read(folder / "snapshot.pt")["model"])
    expected = data.count_correct(model, data.load_digits_split()[1])
    metrics = json.loads((folder / "metrics.json").read_text())
    assert (metrics["correct"], metrics["total"]) == expected
    assert metrics["total"] == 359 and 359 % 3


def test_only_rank_0_writes_and_keys_are_those_of_the_plain_model(trained):
    folder, process = trained
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["metrics.json", "snapshot.pt", "snapshot.pt.previous"]
    assert process.stdout.count("Snapshot of") == 2
    keys = read(folder / "snapshot.pt")["model"].keys()
    assert keys == data.make_model().state_dict().keys()


# -- bad input -----------------------------------------------------------------
@pytest.mark.parametrize("arguments", [(0, 1), (1, 0), (1, 1, "--nprocs", 0)])
def test_numbers_out_of_range_are_refused(arguments, tmp_path):
    assert "is not a whole number above 0" in sentence(
        script(tmp_path, NAME, *arguments)
    )


def test_port_that_is_chosen_is_free(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "set again below")
    assert distributed.prepare_spawn(2) == 2
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    with socket.create_server(place) as listener:  # sets SO_REUSEADDR, as PyTorch does
        assert listener.getsockname() == place


def test_launcher_around_it_is_refused(monkeypatch):
    """N processes that spawn N ranks each would be N x N processes."""
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(BadInput, match=r"RANK=0 is set.*unset RANK"):
        distributed.prepare_spawn(2)


def test_ranks_are_as_many_as_wanted_or_as_devices(monkeypatch):
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")  # put back at the end
    assert distributed.prepare_spawn(3) == 3
    monkeypatch.setattr(distributed, "count_accelerators", lambda: 4)
    assert distributed.prepare_spawn(None) == 4
    monkeypatch.setattr(distributed, "count_accelerators", lambda: 0)
    assert distributed.prepare_spawn(None) == 2
    assert os.environ["MASTER_ADDR"] == "127.0.0.1"


def test_damaged_snapshot_is_named_once_by_all_ranks(tmp_path):
    (tmp_path / "snapshot.pt").write_bytes(b"damaged")
    said = sentence(script(tmp_path, NAME, 1, 1, "--nprocs", 3))
    assert "the snapshot snapshot.pt is damaged" in said
    assert (tmp_path / "snapshot.pt").read_bytes() == b"damaged"
