"""src/tensor_by_hand.py and src/tensor_parallel.py: what a learner sees, and sums."""

import json
from pathlib import Path

import pytest

from grader.checks import checks_in
from grader.engine import Engine
from grader.verdict import Kind
from tests.scripts import trainings

CHECKS = checks_in(Path(__file__).resolve().parent / "ranks_14_tensor.py")
SMALL = ["--width", 24, "--heads", 12, "--blocks", 1, "--context", 24]
SCRIPTS = ["tensor_by_hand.py", "tensor_parallel.py"]


@pytest.fixture(scope="module")
def engine():
    with Engine() as engine:
        engine.warm()
        yield engine


@pytest.mark.parametrize(
    "check", CHECKS, ids=lambda c: f"{c.function[5:]}-{c.world_size}-seed-{c.seed}"
)
def test_in_ranks(check, engine, tmp_path):
    nobody = tmp_path / "nobody.py"
    nobody.write_text("")
    verdict = engine.run_check(check, "", nobody)
    assert verdict.kind is Kind.RIGHT, verdict.message


def train(folder, ranks, name, *arguments):
    return trainings.torchrun(folder, ranks, trainings.SRC / name, *arguments)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The losses of one device."""
    folder = tmp_path_factory.mktemp("alone")
    done = trainings.script(
        folder, "train_gpt.py", 30, "--batch-size", 8, *SMALL, "--metrics", "m.json"
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "m.json").read_text())


@pytest.mark.parametrize("options", [[], ["--sequence-parallel"]], ids=["", "sliced"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_trains_as_one_device_and_counts_as_the_formulas(
    tmp_path, alone, name, options
):
    """Three ranks, so that the 256 scores are cut into unequal parts."""
    done = train(
        tmp_path,
        3,
        name,
        30,
        "--batch-size",
        8,
        *SMALL,
        "--metrics",
        "m.json",
        *options,
    )
    assert done.returncode == 0, done.stderr
    assert "they differ" not in done.stdout
    assert "sent in a step" in done.stdout
    numbers = json.loads((tmp_path / "m.json").read_text())
    assert numbers["world_size"] == 3
    assert numbers["losses"] == pytest.approx(alone["losses"], abs=1e-3)
    assert numbers["test_loss"] == pytest.approx(alone["test_loss"], abs=1e-3)
    assert numbers["losses"][-1] < numbers["losses"][0] - 1


def refusal(done, name):
    said = [line for line in done.stderr.splitlines() if f"{name}: error" in line]
    assert len(said) == 1, done.stderr
    return said[0].partition("error: ")[2]


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_cannot_be_divided_is_one_sentence(tmp_path, name):
    done = train(tmp_path, 2, name, 1, "--width", 9, "--heads", 3)
    assert refusal(done, name) == (
        "--heads 3 cannot be divided among 2 ranks: choose 2 or 4"
    )


def test_uneven_context_is_one_sentence(tmp_path):
    name = "tensor_by_hand.py"
    done = train(tmp_path, 2, name, 1, *SMALL[:-1], 25, "--sequence-parallel")
    assert refusal(done, name) == (
        "--context 25 cannot be divided among 2 ranks: choose 24 or 26"
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_world_of_one_is_refused(tmp_path, name):
    done = trainings.script(tmp_path, name, 1)
    assert "one rank has nobody to talk to" in trainings.sentence(done)
