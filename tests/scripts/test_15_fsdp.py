"""src/15_fsdp.py: what a learner sees, and the sums of ranks_15_fsdp.py."""

import json
from pathlib import Path

import pytest

from tests.in_ranks import assert_right, every_check_in
from tests.scripts.trainings import SRC, read, script, torchrun

pytestmark = pytest.mark.full

SMALL = ["--width", 12, "--heads", 3, "--blocks", 2, "--context", 16]
SMALL += ["--batch-size", 6]


@pytest.mark.nightly
@every_check_in(Path(__file__).resolve().parent / "ranks_15_fsdp.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


@pytest.mark.nightly
def test_from_ranks_to_one_device_and_back(tmp_path):
    """3 ranks, then one process, then 2 ranks: each goes on where the last stopped."""
    fsdp, metrics = SRC / "15_fsdp.py", tmp_path / "metrics.json"
    save = ["--save-every", 10, *SMALL]
    done = torchrun(tmp_path, 3, fsdp, 30, *save, "--metrics", metrics)
    assert done.returncode == 0, done.stderr
    numbers = json.loads(metrics.read_text())
    assert numbers["losses"][-1] < numbers["losses"][0] - 1
    assert read(tmp_path / "15_fsdp.pt")["steps_run"] == 30
    one = ["--snapshot", "15_fsdp.pt"]
    done = script(tmp_path, "13_train_gpt.py", 40, *save, *one)
    assert "Resuming from 15_fsdp.pt after 30 steps" in done.stdout, done.stderr
    done = torchrun(tmp_path, 2, fsdp, 50, *save, "--mixed-precision")
    assert "Resuming from 15_fsdp.pt after 40 steps" in done.stdout, done.stderr
    assert read(tmp_path / "15_fsdp.pt")["steps_run"] == 50


def test_foreign_snapshot_is_one_sentence(tmp_path):
    (tmp_path / "15_fsdp.pt").write_text("no snapshot")
    done = torchrun(tmp_path, 2, SRC / "15_fsdp.py", 2, "--save-every", 1, *SMALL)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "15_fsdp.py: error" in line]
    assert len(said) == 1, done.stderr
    assert "15_fsdp.pt is damaged or is no snapshot" in said[0]


@pytest.mark.nightly
@pytest.mark.parametrize("options", [[], ["--mixed-precision"]])
def test_cost_is_what_the_formula_says(tmp_path, options):
    command = [SRC / "instruments/15_cost.py", SRC / "15_fsdp.py", 30, *SMALL, *options]
    done = torchrun(tmp_path, 3 - len(options), *command)
    assert done.returncode == 0, done.stderr
    assert "they differ" not in done.stdout
    assert "\nwhole at once " in done.stdout
