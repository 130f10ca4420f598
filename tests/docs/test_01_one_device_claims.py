"""What docs/lessons/01_one_device says about PyTorch, tried out.

Each test is named after its sentence on the page. What 01_single_device.py itself does
is tested in tests/scripts/test_01_single_device.py and by the transcripts; the mistakes
of the training loop and of resuming by the known answers of the exercises.
"""

import copy
import io
import math
import os
import pathlib
import pickle
import re
import sys
from collections import OrderedDict
from importlib import import_module
from pathlib import Path
from runpy import run_path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.docs.pages import checked_page

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))


from common.data import (  # noqa: E402
    WIDTH,
    count_correct,
    load_digits_split,
    make_model,
)

on_the_page = checked_page("01_one_device")


def small_training(momentum=0.9):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    return model, torch.optim.SGD(model.parameters(), 0.1, momentum=momentum)


def backward(model, seed=0):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(5, 4, generator=generator)
    F.cross_entropy(model(images), torch.tensor([0, 1, 2, 0, 1])).backward()


def test_micro_batches_of_unequal_size_take_the_step_of_the_whole_batch(capsys):
    on_the_page("so the step equals that of the whole batch, except for rounding")
    on_the_page("a batch of 30 in micro-batches of 8 ends with one of 6")
    example = run_path(str(ROOT / "docs" / "examples" / "01_accumulate.py"))
    for size in (7, 8, 30):
        model, optimizer = small_training()
        model.double()
        images = torch.randn(30, 4, dtype=torch.float64)
        labels = torch.arange(30) % 3
        whole = copy.deepcopy(model)
        F.cross_entropy(whole(images), labels).backward()
        backward(model.float())  # leftovers in .grad
        model.double()
        example["accumulated_step"](model, optimizer, images, labels, size)
        for mine, wanted in zip(model.parameters(), whole.parameters(), strict=True):
            assert torch.allclose(mine.grad, wanted.grad, rtol=0, atol=1e-12)
    example["main"]()
    assert float(capsys.readouterr().out.split()[-1]) < 1e-15


def test_batch_norm_sees_only_the_micro_batch():
    on_the_page("such as BatchNorm, is an exception: it sees only the micro-batch")
    torch.manual_seed(0)
    images, labels = torch.randn(8, 4, dtype=torch.float64), torch.arange(8) % 3
    for norm, as_whole in ((nn.BatchNorm1d(4), False), (nn.LayerNorm(4), True)):
        model = nn.Sequential(norm, nn.Linear(4, 3)).double()
        whole = copy.deepcopy(model)
        F.cross_entropy(whole(images), labels).backward()
        for part in (slice(4), slice(4, 8)):
            (F.cross_entropy(model(images[part]), labels[part]) / 2).backward()
        mine, wanted = model[1].weight.grad, whole[1].weight.grad
        assert torch.allclose(mine, wanted, rtol=0, atol=1e-12) is as_whole


def test_45_steps_of_which_the_last_sees_30_images():
    on_the_page("there are 45 steps, and the last one sees 30 images")
    train_set, test_set = load_digits_split()
    sizes = [len(labels) for _, labels in DataLoader(train_set, 32)]
    assert len(sizes) == 45 and sizes[-1] == 30
    on_the_page("1,438 to train on and 359 to test")
    assert (len(train_set), len(test_set)) == (1438, 359)


def test_an_epoch_has_3_steps_with_batches_of_512():
    on_the_page("An epoch now has 3 steps, not 45")
    assert len(DataLoader(load_digits_split()[0], 512)) == 3
    on_the_page("sixteen ranks with 32 images each *are* a batch of 512")
    assert 16 * 32 == 512


def test_359_is_a_prime_number():
    on_the_page("359 is a prime number")
    assert all(359 % divisor for divisor in range(2, math.isqrt(359) + 1))


def test_backward_adds_to_grad():
    on_the_page("``backward`` *adds* to ``.grad``")
    model, optimizer = small_training()
    backward(model)
    once = model.weight.grad.clone()
    backward(model)
    assert torch.equal(model.weight.grad, 2 * once)
    on_the_page("``zero_grad`` empties it")
    optimizer.zero_grad()
    assert model.weight.grad is None


def test_gradient_has_791080_bytes():
    on_the_page("197,770 numbers of 4 bytes, 791,080 bytes")
    on_the_page("every rank hands that much to an :term:`all-reduce` in every step")
    on_the_page("791,080 bytes here, is what every rank hands to an all-reduce")
    model = make_model(width=WIDTH)
    model(torch.zeros(1, 1, 8, 8)).sum().backward()
    gradients = [p.grad for p in model.parameters()]
    assert sum(g.numel() for g in gradients) == 197_770
    assert sum(g.numel() * g.element_size() for g in gradients) == 791_080


def test_one_number_of_momentum_per_weight():
    on_the_page("one number of momentum per weight")
    model, optimizer = small_training()
    backward(model)
    optimizer.step()
    kept = [s["momentum_buffer"].numel() for s in optimizer.state.values()]
    assert kept == [p.numel() for p in model.parameters()]


def test_loader_without_a_generator_draws_from_the_global_random_numbers():
    on_the_page("If it drew from the global one")
    data = TensorDataset(torch.arange(8))
    for generator, draws in ((None, True), (torch.Generator(), False)):
        before = torch.get_rng_state()
        list(DataLoader(data, 2, shuffle=True, generator=generator))
        assert torch.equal(before, torch.get_rng_state()) is not draws


class Bomb:
    """Unpickling it makes a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_unpickling_can_run_any_code(tmp_path):
    on_the_page("unpickling can run any code")
    file = tmp_path / "bomb.pt"
    torch.save({"model": Bomb(tmp_path / "exploded")}, file)
    for arguments in ({"weights_only": True}, {}):
        with pytest.raises(Exception, match="Weights only load failed"):
            torch.load(file, **arguments)
        assert not (tmp_path / "exploded").exists()
    torch.load(file, weights_only=False)
    assert (tmp_path / "exploded").exists()


def saved_and_read(content):
    file = io.BytesIO()
    torch.save(content, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_weights_only_reads_tensors_numbers_strings_lists_and_dicts():
    on_the_page(
        "reads tensors, numbers, strings, lists, dicts and a few other plain types"
    )
    content = {"t": torch.ones(2), "n": [1, 2.5], "s": "text", "d": {"inner": None}}
    read = saved_and_read(content)
    assert torch.equal(read.pop("t"), content.pop("t")) and read == content
    for plain in ((1, 2), {1}, b"bytes", OrderedDict(a=1), torch.Size([1]), 1j):
        assert saved_and_read(plain) == plain


def test_weights_only_refuses_any_other_class_unless_you_allow_it():
    on_the_page("It refuses any other class unless you allow it")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        saved_and_read(pathlib.PurePosixPath("a"))
    allowed = [pathlib.PurePosixPath]
    with torch.serialization.safe_globals(allowed):
        assert saved_and_read(pathlib.PurePosixPath("a")).name == "a"


def test_eval_switches_dropout_off():
    on_the_page("``eval()`` switches dropout off")
    torch.manual_seed(0)
    model, images = make_model(dropout=0.5), torch.rand(64, 1, 8, 8)
    model.eval()
    assert torch.equal(model(images), model(images))
    on_the_page("the model is in training mode, so dropout is active")
    model.train()
    assert not torch.equal(model(images), model(images))


def test_the_workshops_own_code_leaves_the_model_in_evaluation_mode():
    on_the_page("It only counts, and it leaves the model in evaluation mode")
    model, test_set = make_model(), load_digits_split()[1]
    model.train()
    recognized, images = count_correct(model, test_set)
    assert images == 359 and 0 <= recognized <= 359
    assert not model.training
    program = import_module("01_single_device")
    on_the_page("because ``run_epoch`` begins with ``train()``")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    program.run_epoch(model, optimizer, [], torch.device("cpu"))
    assert model.training


def test_missing_zero_grad_adds_up_the_gradients_of_all_steps():
    on_the_page("every step adds up the gradients of all steps before")
    model, optimizer = small_training(momentum=0)
    start = [p.detach().clone() for p in model.parameters()]
    gradients = []
    for step in range(3):
        fresh = copy.deepcopy(model)
        fresh.zero_grad()
        backward(fresh, step)
        gradients.append(fresh.weight.grad)
        backward(model, step)
        optimizer.step()
    total = sum((3 - step) * g for step, g in enumerate(gradients))
    torch.testing.assert_close(model.weight.detach(), start[0] - 0.1 * total)


def test_undivided_loss_is_a_gradient_that_many_times_too_large():
    on_the_page("which makes the gradient that many times too large")
    model, _ = small_training()
    backward(model)
    once = model.weight.grad.clone()
    for _ in range(3):
        backward(model)
    torch.testing.assert_close(model.weight.grad, 4 * once)


def test_mean_of_batch_accuracies_is_not_a_whole_number_of_images():
    on_the_page("the mean of the batches' accuracies, with a smaller last batch")
    right = torch.tensor([1, 1, 1, 0, 1, 1, 0], dtype=torch.float64)
    means = [batch.mean() for (batch,) in DataLoader(TensorDataset(right), 4)]
    mean_of_means = float(sum(means) / len(means))
    assert abs(7 * mean_of_means - round(7 * mean_of_means)) > 0.01
    assert round(float(right.mean()) * 7) == 5


def test_state_dict_holds_the_models_own_tensors():
    on_the_page("``state_dict()`` holds the model's own tensors")
    model, optimizer = small_training()
    best, copied = model.state_dict(), copy.deepcopy(model.state_dict())
    backward(model)
    optimizer.step()
    assert torch.equal(best["weight"], model.weight)
    assert not torch.equal(copied["weight"], model.weight)


def test_stopwatch_waits_for_the_device(monkeypatch):
    on_the_page("Waiting slows training down")
    waited = []
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    device = torch.device("cuda", 1)  # only its name is used
    with import_module("instruments.01_profile").StepTimer(device)("forward"):
        pass
    assert waited == [device] * 2


def test_steps_are_cheaper_in_large_batches_by_the_recording():
    """The folded answer says so of the two profiles it is recorded with."""
    on_the_page("its share nearly vanishes")
    shares = []
    for name in ("01_profile", "01_large_batch"):
        text = (ROOT / "docs" / "transcripts" / f"{name}.txt").read_text()
        shares.append(float(re.search(r"^step .* ([\d.]+)%$", text, re.M)[1]))
    assert shares[1] < 0.4 * shares[0]


def test_accuracy_suffers_from_few_steps_by_the_recording():
    on_the_page("the network has learned less")
    numbers = []
    for name in ("01_profile", "01_large_batch"):
        text = (ROOT / "docs" / "transcripts" / f"{name}.txt").read_text()
        numbers.append(int(re.search(r"\((\d+) of 359\)", text)[1]))
    assert numbers[1] < numbers[0] - 10


def test_more_threads_are_limited_to_one_by_torchrun():
    """torchrun sets OMP_NUM_THREADS=1 where it starts more than one process."""
    on_the_page("``OMP_NUM_THREADS=1``, as torchrun sets it")
    from torch.distributed.run import config_from_args, get_args_parser

    arguments = ["--standalone", "--nproc-per-node=2", "script.py"]
    before = os.environ.pop("OMP_NUM_THREADS", None)
    try:
        config_from_args(get_args_parser().parse_args(arguments))
        assert os.environ["OMP_NUM_THREADS"] == "1"
    finally:
        os.environ.pop("OMP_NUM_THREADS", None)
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before
