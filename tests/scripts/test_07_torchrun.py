"""src/07_torchrun.py: it survives kills with equal bits, and ends well."""

import json
import re
from importlib import import_module

import pytest

from common.distributed import BadInput
from tests.docs.pages import lesson_source
from tests.scripts.trainings import SMALL, SRC, script, sentence, torchrun
from tools import bench_kills

NAME = "07_torchrun.py"
# each costs about 6 s; `make bench` does 100
KILLS = 5
COMPLAINT = re.compile(rf"^{NAME}: error: (.*)$", re.M)


@pytest.mark.nightly
@pytest.mark.cold("ranks among the processes below their launcher are killed")
def test_run_whose_ranks_are_killed_ends_with_the_same_bits():
    """Random ranks, at random times; snapshot and all that it holds are compared."""
    killed, broken = bench_kills.kill_ranks(KILLS)
    assert not broken, broken[0]
    assert killed == KILLS


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(folder, process) of 6 epochs on 2 ranks that may be restarted."""
    folder = tmp_path_factory.mktemp("trained")
    options = [
        "--max-restarts=3",
        SRC / NAME,
        *SMALL,
        6,
        6,
        "--metrics",
        "metrics.json",
    ]
    return folder, torchrun(folder, 2, *options)


def test_training_learns_the_digits_and_one_rank_speaks(trained):
    folder, process = trained
    assert process.returncode == 0, process.stderr
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.95 and metrics["total"] == 359
    assert metrics["world_size"] == 2 and metrics["epochs"] == 6
    assert process.stdout.count("[rank 0 of 2] Epoch") == 6
    assert "rank 1" not in process.stdout


def test_program_prints_nothing_about_torchruns_settings(trained):
    """The page says it where the reader restarts: a rank could not repair it."""
    _, process = trained
    assert "TORCH_DISABLE" not in process.stdout
    page = lesson_source("07_torchrun")
    section = page.partition("Watch a restart\n=")[2].partition("\n====")[0]
    warning = section.partition(".. warning::")[2].partition("\n\n..")[0]
    assert "export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1" in warning


def test_without_torchrun_it_says_how_to_start_it(tmp_path):
    assert "torchrun --standalone" in sentence(script(tmp_path, NAME, 1, 1))


def test_other_launcher_is_refused(monkeypatch):
    program = import_module("07_torchrun")
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.setenv(name, "0")
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    with pytest.raises(BadInput, match="torchrun did not start"):
        program.setup()


@pytest.mark.parametrize(
    "arguments, words",
    [((0, 1), "'0' is not a whole number"), ((1, 1), "snapshot.pt is damaged")],
)
def test_error_of_all_ranks_is_said_once(arguments, words, tmp_path):
    (tmp_path / "snapshot.pt").write_bytes(b"damaged")
    process = torchrun(tmp_path, 2, SRC / NAME, *SMALL, *arguments)
    assert process.returncode == 1  # torchrun's own; rank 0 ended with 2
    (said,) = COMPLAINT.findall(process.stderr)
    assert words in said
    assert re.search(r"exitcode +: 2 ", process.stderr)
    assert (tmp_path / "snapshot.pt").read_bytes() == b"damaged"


@pytest.mark.nightly
@pytest.mark.cold("how Python itself ends is the subject")
def test_ddp_that_is_released_first_never_hangs_the_end():
    """The usual shape does: `make bench` counts both."""
    assert bench_kills.count_bad_ends("released_first", 5) == 0
