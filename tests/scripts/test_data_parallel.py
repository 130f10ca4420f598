"""src/data_parallel.py: nn.DataParallel, and its algorithm by hand."""

import json

import pytest
import torch

from data_parallel_by_hand import DataParallelByHand
from tests.scripts.trainings import script, sentence

NAME = "data_parallel.py"


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)
    ).double()


@pytest.mark.parametrize("images", [12, 10, 3, 1])
def test_gradient_by_hand_is_that_of_the_whole_batch(images):
    """Also where the batch does not divide by 4, or is smaller than that."""
    batch = torch.randn(images, 5, dtype=torch.float64)
    labels = torch.randint(3, (images,))
    whole, split = make_model(), make_model()
    parallel = DataParallelByHand(split, 4)
    for model in (whole, parallel):
        torch.nn.functional.cross_entropy(model(batch), labels).backward()
    for expected, found in zip(whole.parameters(), split.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad, atol=1e-10, rtol=1e-10)


def test_wrapper_has_the_weights_of_the_model_and_no_more():
    model = make_model()
    assert len(list(DataParallelByHand(model, 4).parameters())) == 4


def test_script_without_gpus_says_that_nothing_is_parallel(tmp_path):
    process = script(tmp_path, NAME, 6, 6, "--metrics", "metrics.json")
    assert process.returncode == 0, process.stderr
    assert "nn.DataParallel just calls the module" in process.stdout
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.95


def test_script_by_hand_learns_the_same(tmp_path):
    process = script(tmp_path, NAME, 6, 6, "--by-hand", 4, "--metrics", "metrics.json")
    assert process.returncode == 0, process.stderr
    assert "split over 4 threads" in process.stdout
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.95


def test_parts_out_of_range_are_refused(tmp_path):
    assert "'0' is not a whole" in sentence(
        script(tmp_path, NAME, 1, 1, "--by-hand", 0)
    )
