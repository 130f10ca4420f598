"""What is printed by 21_ring_attention.py, 21_ulysses.py, 21_context_parallel.py,
21_context_fsdp.py, 21_packed_documents.py and 21_cost.py; test_21_sequences.py has what
happens in their ranks.
"""

import json
import re
from importlib import import_module
from types import SimpleNamespace

import pytest
import torch

from common.bad_input import BadInput
from tests.scripts import trainings

pytestmark = pytest.mark.full

SMALL = ["--width", 24, "--heads", 12, "--blocks", 1, "--context", 24]
TRAINING = [15, "--batch-size", 8, *SMALL, "--learning-rate", 0.01]
RING, ULYSSES = "21_ring_attention.py", "21_ulysses.py"
GRID = "21_context_fsdp.py"
RUNS = [
    pytest.param(RING, 3, [], marks=pytest.mark.quick),
    (RING, 4, ["--zigzag"]),
    (RING, 2, ["--gather"]),
    (ULYSSES, 3, []),
]


def train(folder, ranks, name, *arguments):
    return trainings.torchrun(folder, ranks, trainings.program(name), *arguments)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The numbers of one device."""
    folder = tmp_path_factory.mktemp("alone")
    done = trainings.script(folder, "13_train_gpt.py", *TRAINING, "--metrics", "m.json")
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "m.json").read_text())


GRIDS = [
    pytest.param(GRID, 4, [], marks=pytest.mark.quick),
    (GRID, 3, ["--context-ranks", 3]),
    (GRID, 4, ["--context-ranks", 1]),
]


@pytest.mark.parametrize(("name", "ranks", "options"), [*RUNS, *GRIDS])
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
    ("ranks", "options"),
    [pytest.param(3, [], marks=pytest.mark.quick), (4, ["--zigzag"])],
)
def test_packed_documents_train_as_on_one_rank(tmp_path, ranks, options):
    """Not as 13_train_gpt.py does, where a document attends to those before it."""
    name, losses = "21_packed_documents.py", {}
    # long enough for an empty line in some of them, whichever Python's library it is
    long = ["--context", 240]
    for count, more in ((1, []), (ranks, options)):
        file = f"{count}.json"
        done = train(tmp_path, count, name, *TRAINING, *long, "--metrics", file, *more)
        assert done.returncode == 0, done.stderr
        assert re.search(r"8 sequences of step 0 hold (?!8 )\d+ documents", done.stdout)
        losses[count] = json.loads((tmp_path / file).read_text())["losses"]
    assert losses[ranks] == pytest.approx(losses[1], abs=1e-3)
    assert losses[1][-1] < losses[1][0] - 1


def test_program_of_torch_trains_alone_as_one_device(tmp_path, alone):
    name = "21_context_parallel.py"
    done = trainings.script(tmp_path, name, *TRAINING, "--metrics", "m.json")
    assert done.returncode == 0, done.stderr
    numbers = json.loads((tmp_path / "m.json").read_text())
    assert numbers["losses"] == pytest.approx(alone["losses"], abs=1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "ranks", "options"), RUNS)
def test_cost_is_what_the_formulas_say(tmp_path, name, ranks, options):
    command = [trainings.SRC / name, *TRAINING, *options]
    done = train(tmp_path, ranks, "21_cost.py", *command)
    assert done.returncode == 0, done.stderr
    assert "they differ" not in done.stdout
    assert "\nsent in a step " in done.stdout
    products = re.findall(r"per block: (.+)", done.stdout)
    expected = {"": ["3, 7, 11"], "--zigzag": ["9, 9, 9, 9"]}
    method = "".join(options) if name == RING else name
    assert products == expected.get(method, [])


@pytest.mark.parametrize(("ranks", "context"), [(2, 64), (2, 96), (4, 128)])
def test_program_of_torch_asks_for_chunks_whose_log_sums_are_not_padded(
    ranks, context, monkeypatch
):
    """pytorch/pytorch#179605; tried with a kernel that pads as CUDA's does."""
    program = import_module("21_context_parallel")
    monkeypatch.setattr(program.dist, "get_world_size", lambda: ranks)
    config = SimpleNamespace(context=context)
    with pytest.raises(BadInput, match=f"--context {context} cannot be divided among"):
        program.build(config, torch.device("cuda", 0))


def refusal(done, name):
    said = [line for line in done.stderr.splitlines() if f"{name}: error" in line]
    assert len(said) == 1, done.stderr
    return said[0].partition("error: ")[2]


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        pytest.param(
            ULYSSES,
            ["--heads", 3, "--width", 24],
            "--heads 3 cannot be divided among 2 ranks: choose 2 or 4",
            marks=pytest.mark.quick,
        ),
        (
            ULYSSES,
            ["--heads", 1, "--width", 24],
            "--heads 1 cannot be divided among 2 ranks: choose 2",
        ),
        (
            RING,
            ["--context", 30],
            "--context 30 cannot be divided among 4 chunks, two on each rank: "
            "choose 28 or 32",
        ),
        (
            GRID,
            ["--context-ranks", 3],
            "--context-ranks 3 does not divide 2 ranks",
        ),
        pytest.param(
            "21_context_parallel.py",
            [],
            "PyTorch's context_parallel has no attention for the CPU: start it on "
            "GPUs, or do the same by hand, with src/21_ring_attention.py --zigzag",
            marks=pytest.mark.quick,
        ),
    ],
)
def test_what_cannot_run_is_one_sentence(tmp_path, name, arguments, sentence):
    done = train(tmp_path, 2, name, 1, *arguments)
    assert done.returncode
    assert refusal(done, name) == sentence
    assert "exitcode  : 2" in done.stderr
