"""src/04_data_parallel.py: nn.DataParallel, and its algorithm by hand."""

import json
import re
from importlib import import_module

import pytest
import torch

from tests.scripts.trainings import script, sentence

DataParallelByHand = import_module("04_data_parallel_by_hand").DataParallelByHand

NAME = "04_data_parallel.py"


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


def test_no_grad_and_evaluation_reach_the_threads():
    model = torch.nn.Sequential(make_model(), torch.nn.Dropout(0.9))
    parallel = DataParallelByHand(model, 4)
    batch = torch.randn(10, 5, dtype=torch.float64)
    parallel.eval()
    with torch.no_grad():
        scores = parallel(batch)
        torch.testing.assert_close(scores, model(batch))
    assert not scores.requires_grad
    assert parallel.train()(batch).requires_grad


def test_buffers_are_those_that_the_first_part_leaves():
    """As with nn.DataParallel, whose replica on device 0 shares them."""
    batch = torch.randn(12, 5, dtype=torch.float64)
    first, whole = (torch.nn.BatchNorm1d(5).double() for _ in range(2))
    DataParallelByHand(first, 4)(batch)
    whole(batch[:3])
    torch.testing.assert_close(first.running_mean, whole.running_mean)
    assert first.num_batches_tracked == 1


def test_step_by_step_says_what_each_thread_gets(tmp_path):
    done = script(tmp_path, "04_data_parallel_by_hand.py")
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"images \[(\d+), 1, 8, 8\] .*, thread (\w+)", done.stdout)
    split = {("8", "0"), ("8", "1"), ("8", "2"), ("6", "3")}
    assert shown[0] == ("30", "MainThread") and set(shown[1:]) == split
    assert "The two gradients are equal to 1e-10" in done.stdout


def test_script_without_gpus_says_that_nothing_is_parallel(tmp_path):
    process = script(tmp_path, NAME, 6, 6, "--metrics", "metrics.json")
    assert process.returncode == 0, process.stderr
    assert "nn.DataParallel just calls the module" in process.stdout
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.95


@pytest.mark.full
def test_by_hand_is_timed_in_one_two_and_four_parts(tmp_path):
    done = script(tmp_path, "04_data_parallel_by_hand.py", "--time")
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^(\d) parts?  ?\s+([\d,]+) images/s$", done.stdout, re.M)
    assert [parts for parts, _ in shown] == ["1", "2", "4"]


def test_option_that_is_not_there_is_refused(tmp_path):
    done = script(tmp_path, "04_data_parallel_by_hand.py", "--speed")
    assert "--speed" in sentence(done)
