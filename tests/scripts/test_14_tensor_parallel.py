"""The programs of lesson 14: what a learner sees, and sums."""

import json
from pathlib import Path

import pytest

from tests.in_ranks import assert_right, every_check_in
from tests.scripts import trainings

pytestmark = pytest.mark.full

SMALL = ["--width", 24, "--heads", 12, "--blocks", 1, "--context", 24]
SCRIPTS = ["14_tensor_by_hand.py", "14_tensor_parallel.py"]


@pytest.mark.nightly
@every_check_in(Path(__file__).resolve().parent / "ranks_14_tensor.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


def train(folder, ranks, name, *arguments):
    return trainings.torchrun(folder, ranks, trainings.program(name), *arguments)


TRAINING = [15, "--batch-size", 8, *SMALL, "--learning-rate", 0.01]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The numbers of one device."""
    folder = tmp_path_factory.mktemp("alone")
    done = trainings.script(folder, "13_train_gpt.py", *TRAINING, "--metrics", "m.json")
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "m.json").read_text())


@pytest.mark.parametrize(
    ("name", "ranks", "options"),
    [
        ("14_tensor_by_hand.py", 3, []),  # 256 scores in unequal parts
        ("14_tensor_by_hand.py", 2, ["--sequence-parallel"]),
        ("14_tensor_parallel.py", 2, []),
        ("14_tensor_parallel.py", 3, ["--sequence-parallel"]),
    ],
)
def test_trains_as_one_device(tmp_path, alone, name, ranks, options):
    done = train(tmp_path, ranks, name, *TRAINING, "--metrics", "m.json", *options)
    assert done.returncode == 0, done.stderr
    numbers = json.loads((tmp_path / "m.json").read_text())
    assert numbers["world_size"] == ranks
    assert numbers["losses"] == pytest.approx(alone["losses"], abs=1e-3)
    assert numbers["test_loss"] == pytest.approx(alone["test_loss"], abs=1e-3)
    assert numbers["losses"][-1] < numbers["losses"][0] - 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "ranks", "options"),
    [
        ("14_tensor_by_hand.py", 3, []),
        ("14_tensor_by_hand.py", 2, ["--sequence-parallel"]),
        ("14_tensor_parallel.py", 2, []),
        ("14_tensor_parallel.py", 3, ["--sequence-parallel"]),
    ],
)
def test_cost_is_what_the_formulas_say(tmp_path, name, ranks, options):
    command = [trainings.SRC / name, *TRAINING, *options]
    done = train(tmp_path, ranks, "14_cost.py", *command)
    assert done.returncode == 0, done.stderr
    assert "they differ" not in done.stdout
    assert "\nsent in a step " in done.stdout


def refusal(done, name):
    said = [line for line in done.stderr.splitlines() if f"{name}: error" in line]
    assert len(said) == 1, done.stderr
    return said[0].partition("error: ")[2]


def test_heads_that_cannot_be_divided_are_one_sentence(tmp_path):
    name = "14_tensor_parallel.py"  # the other has the same, and a transcript of it
    done = train(tmp_path, 2, name, 1, "--width", 9, "--heads", 3)
    assert refusal(done, name) == (
        "--heads 3 cannot be divided among 2 ranks: choose 2 or 4"
    )


def test_uneven_context_is_one_sentence(tmp_path):
    name = "14_tensor_by_hand.py"
    done = train(tmp_path, 2, name, 1, *SMALL[:-1], 25, "--sequence-parallel")
    assert refusal(done, name) == (
        "--context 25 cannot be divided among 2 ranks: choose 24 or 26"
    )
