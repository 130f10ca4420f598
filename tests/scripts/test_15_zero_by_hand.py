"""src/15_zero_by_hand.py: what a learner sees, and the sums of ranks_15_zero.py."""

import json
from pathlib import Path

import pytest

from tests.in_ranks import assert_right, every_check_in
from tests.scripts import trainings

pytestmark = pytest.mark.full

SMALL = ["--width", 12, "--heads", 3, "--blocks", 1, "--context", 16]


@pytest.mark.nightly
@every_check_in(Path(__file__).resolve().parent / "ranks_15_zero.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


def zero(folder, ranks, *arguments):
    return trainings.torchrun(
        folder, ranks, trainings.SRC / "15_zero_by_hand.py", *arguments
    )


def test_learns_the_text(tmp_path):
    metrics = tmp_path / "metrics.json"
    done = zero(tmp_path, 3, 40, "--batch-size", 12, "--metrics", metrics)
    assert done.returncode == 0, done.stderr
    numbers = json.loads(metrics.read_text())
    assert numbers["world_size"] == 3 and len(numbers["losses"]) == 40
    assert numbers["test_loss"] < numbers["unigram_entropy"] - 0.2


def test_cost_is_what_the_formula_says(tmp_path):
    """Three ranks, so that the head needs two numbers of padding."""
    program = trainings.SRC / "15_zero_by_hand.py"
    command = [
        trainings.SRC / "instruments/15_cost.py",
        program,
        40,
        "--batch-size",
        12,
    ]
    done = trainings.torchrun(tmp_path, 3, *command)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "Stage 3, 2 numbers of padding" in lines
    assert "parameters                    670,808        670,808" in lines
    assert not [line for line in lines if "they differ" in line]


def test_mixed_precision_learns_too(tmp_path):
    metrics = tmp_path / "metrics.json"
    options = ["--stage", 2, "--mixed-precision", "--metrics", metrics]
    done = zero(tmp_path, 2, 30, "--batch-size", 4, *SMALL, *options)
    assert done.returncode == 0, done.stderr
    losses = json.loads(metrics.read_text())["losses"]
    assert losses[-1] < losses[0] - 1


def test_batch_that_cannot_be_divided_is_refused(tmp_path):
    done = zero(tmp_path, 2, 1, "--batch-size", 3, *SMALL)
    assert said_by_rank_0(done) == (
        "15_zero_by_hand.py: error: --batch-size 3 cannot be divided among 2 ranks: "
        "choose 2 or 4"
    )


def said_by_rank_0(done):
    """The one line of the script; torchrun adds its own report below."""
    said = [line for line in done.stderr.splitlines() if "hand.py: e" in line]
    assert len(said) == 1, done.stderr
    return said[0]
