"""What is printed and saved by 23_diloco.py; test_23_loose.py has what its ranks do."""

import json
import re
import sys

import pytest

from tests.scripts import trainings

sys.path.insert(0, str(trainings.SRC))
from common.byte_gpt import Sizes
from common.cost.counting import model_parameters

pytestmark = pytest.mark.full

SMALL = ["--width", 24, "--heads", 4, "--blocks", 1, "--context", 24]
OPTIONS = ["--batch-size", 12, *SMALL, "--learning-rate", 0.01, "--local-steps", 4]
PROGRAM = "23_diloco.py"
PARAMETERS = model_parameters(Sizes(width=24, heads=4, blocks=1, context=24))


def train(folder, ranks, steps, *more):
    command = [trainings.SRC / PROGRAM, steps, *OPTIONS, *more]
    done = trainings.torchrun(folder, ranks, *command)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("ranks", "options", "sent"),
    [
        pytest.param(3, [], PARAMETERS * 4 * 4 / 3 / 4, marks=pytest.mark.quick),
        (4, ["--fragments", 3], PARAMETERS * 4 * 6 / 4 / 4),
        (
            3,
            ["--fragments", 2, "--delay", 2, "--keep", 0.5],
            PARAMETERS * 4 * 4 / 3 / 4,
        ),
        (4, ["--int8"], (PARAMETERS * 6 / 4 + 2 * 3 * 4) / 4),
    ],
)
def test_learns_and_says_what_it_sends(tmp_path, ranks, options, sent):
    said = train(tmp_path, ranks, 30, "--metrics", "m.json", *options)
    metrics = json.loads((tmp_path / "m.json").read_text())
    assert metrics["world_size"] == ranks
    assert metrics["losses"][-1] < metrics["losses"][0] - 1
    assert metrics["test_loss"] < metrics["losses"][0] - 1
    (number,) = re.findall(r"for the model: ([\d,]+) bytes per step", said)
    assert int(number.replace(",", "")) == round(sent)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "options",
    [[], ["--fragments", 2, "--int8"], ["--fragments", 2, "--delay", 3, "--keep", 0.5]],
)
def test_resumed_run_equals_uninterrupted_run_bit_for_bit(tmp_path, options):
    """Stopped after 6 steps of 12, with K = 4: between two outer steps."""
    saving = [*options, "--save-every", 6, "--snapshot"]
    train(tmp_path, 3, 12, *saving, "straight.pt")
    train(tmp_path, 3, 6, *saving, "twice.pt")
    said = train(tmp_path, 3, 12, *saving, "twice.pt")
    assert "Resuming from twice.pt after 6 steps" in said
    straight, twice = (
        trainings.read(tmp_path / f"{n}.pt") for n in ("straight", "twice")
    )
    trainings.assert_same_bits(twice, straight)
    moments = [state["optimizer"]["state"][0]["exp_avg"] for state in straight["ranks"]]
    assert not (moments[0] == moments[1]).all(), "the inner states are all rank 0's"
    outer = [state["outer"] for state in straight["ranks"]]
    for own in outer:
        for fragment, first in zip(own, outer[0], strict=True):
            for name in ("shared", "momentum"):
                trainings.assert_same_bits(fragment[name], first[name])


def refusal(done):
    said = [line for line in done.stderr.splitlines() if f"{PROGRAM}: error" in line]
    assert len(said) == 1, done.stderr
    assert "exitcode  : 2" in done.stderr
    return said[0].partition("error: ")[2]


def test_another_number_of_ranks_is_refused(tmp_path):
    """Each rank has an inner state of its own, and a new one would have none."""
    saving = ["--save-every", 2, "--snapshot", "s.pt"]
    train(tmp_path, 3, 2, *saving)
    command = [trainings.SRC / PROGRAM, 4, *OPTIONS, *saving]
    done = trainings.torchrun(tmp_path, 2, *command)
    sentence = "s.pt has the states of 3 ranks: start 3 ranks, or choose another"
    assert refusal(done) == f"{sentence} --snapshot"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--local-steps", 2, "--fragments", 3],
            "--fragments 3: they need as many steps, but --local-steps is 2: choose "
            "fewer fragments",
        ),
        (
            ["--local-steps", 500, "--fragments", 500],
            "--fragments 500 are too many, as the model has 70 parameters: choose "
            "fewer",
        ),
        (
            ["--local-steps", 4, "--delay", 4],
            "--delay 4: a fragment is sent again after 4 steps: choose a shorter one",
        ),
        (
            ["--keep", 0.5],
            "--keep 0.5: without --delay no inner step is taken meanwhile: leave it, "
            "or add --delay",
        ),
        (
            ["--delay", 2, "--int8"],
            "--delay 2 can't be with --int8: its messages wait for each other: leave "
            "one",
        ),
        (
            ["--batch-size", 3],
            "--batch-size 3 cannot be divided among 2 ranks: choose 2 or 4",
        ),
        (
            ["--outer-momentum", 1],
            "'1' is not a number from 0 to below 1",
        ),
    ],
)
def test_what_cannot_run_is_one_sentence(tmp_path, arguments, sentence):
    command = [trainings.SRC / PROGRAM, 1, *arguments]
    assert sentence in refusal(trainings.torchrun(tmp_path, 2, *command))
