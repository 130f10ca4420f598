"""What is printed by 22_mixture_of_experts.py, 22_expert_parallel.py and 22_cost.py;
test_22_experts.py has what happens in their ranks."""

import json
import re

import pytest

from tests.scripts import trainings

pytestmark = pytest.mark.full

SMALL = ["--width", 24, "--heads", 4, "--blocks", 1, "--context", 24, "--experts", 6]
TRAINING = [15, "--batch-size", 12, *SMALL, "--learning-rate", 0.01]
ALONE, SPREAD = "22_mixture_of_experts.py", "22_expert_parallel.py"


def train(folder, ranks, name, *arguments):
    return trainings.torchrun(folder, ranks, trainings.SRC / name, *arguments)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The numbers of one process."""
    folder = tmp_path_factory.mktemp("alone")
    done = trainings.script(folder, ALONE, *TRAINING, "--metrics", "m.json")
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "m.json").read_text())


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        pytest.param(3, [], marks=pytest.mark.quick),
        (4, ["--expert-ranks", 2]),
    ],
)
def test_trains_as_one_process(tmp_path, alone, ranks, options):
    done = train(tmp_path, ranks, SPREAD, *TRAINING, "--metrics", "m.json", *options)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "m.json").read_text())
    assert metrics["world_size"] == ranks
    assert metrics["losses"] == pytest.approx(alone["losses"], abs=2e-3)
    assert metrics["test_loss"] == pytest.approx(alone["test_loss"], abs=2e-3)
    assert metrics["losses"][-1] < metrics["losses"][0] - 1


def test_resumes_on_another_number_of_ranks(tmp_path, alone):
    """Three ranks run 10 steps, two continue, and end where one process does."""
    saving = ["--save-every", 10, "--snapshot", "s.pt"]
    first = train(tmp_path, 3, SPREAD, 10, *TRAINING[1:], *saving)
    assert first.returncode == 0, first.stderr
    assert "Snapshot of 10 steps in s.pt" in first.stdout
    second = train(tmp_path, 2, SPREAD, *TRAINING, *saving, "--metrics", "m.json")
    assert second.returncode == 0, second.stderr
    assert "Resuming from s.pt after 10 steps" in second.stdout
    losses = json.loads((tmp_path / "m.json").read_text())["losses"]
    assert losses == pytest.approx(alone["losses"][10:], abs=2e-3)


def test_capacity_drops_and_shared_expert_is_added(tmp_path):
    options = ["--top-k", 1, "--capacity-factor", 1, "--shared-expert"]
    done = trainings.script(tmp_path, ALONE, *TRAINING, *options)
    assert done.returncode == 0, done.stderr
    share = re.search(
        r"Dropped in the last step: ([\d.]+)% of the choices", done.stdout
    )
    assert share and 0 < float(share[1]) < 100
    assert "The busiest expert is chosen" in done.stdout


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        pytest.param(3, [], marks=pytest.mark.quick),
        (4, ["--expert-ranks", 2, "--shared-expert", "--capacity-factor", 1.1]),
    ],
)
def test_cost_is_what_the_formulas_say(tmp_path, ranks, options):
    command = [trainings.SRC / SPREAD, *TRAINING, *options]
    done = train(tmp_path, ranks, "instruments/22_cost.py", *command)
    assert done.returncode == 0, done.stderr
    assert "they differ" not in done.stdout
    assert "\nsent in a step " in done.stdout
    rows = re.search(r"experts compute: (.+)", done.stdout)[1].split(", ")
    assert len(rows) == ranks
    choices = 12 * 24 * 2
    computed = sum(map(int, rows))
    if "--capacity-factor" in options:
        assert 0 < computed < choices
    else:
        assert computed == choices


def refusal(done, name):
    said = [line for line in done.stderr.splitlines() if f"{name}: error" in line]
    assert len(said) == 1, done.stderr
    return said[0].partition("error: ")[2]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--experts", 7],
            "--experts 7 cannot be divided among 2 expert ranks: choose 6 or 8",
        ),
        (
            ["--experts", 2, "--top-k", 3],
            "--top-k 3 is more than --experts 2: choose at most 2",
        ),
        (
            ["--expert-ranks", 3],
            "--expert-ranks 3 do not divide a world of 2: choose a divisor, or start "
            "a multiple of 3 ranks",
        ),
        (
            ["--batch-size", 3],
            "--batch-size 3 cannot be divided among 2 ranks: choose 2 or 4",
        ),
    ],
)
def test_what_cannot_run_is_one_sentence(tmp_path, arguments, sentence):
    done = train(tmp_path, 2, SPREAD, 1, *arguments)
    assert done.returncode
    assert refusal(done, SPREAD) == sentence
    assert "exitcode  : 2" in done.stderr


@pytest.mark.quick
def test_mixture_that_cannot_be_made_is_one_sentence(tmp_path):
    said = trainings.sentence(trainings.script(tmp_path, ALONE, 1, "--top-k", 9))
    assert said.endswith("--top-k 9 is more than --experts 8: choose at most 8")
