"""Checks of exercises/01_exact_accuracy.py."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from workshop.grader import expect


class Watched(nn.Module):
    """A linear network that notes whether gradients were recorded in forward."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        self.recorded = []

    def forward(self, x):
        self.recorded.append(torch.is_grad_enabled() and not torch.is_inference(x))
        return self.layers(x)


def model_and_data(seed, *extra):
    """A float64 network that uses ``extra`` layers, and 11 images with labels."""
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), *extra, nn.Linear(5, 3))
    images = torch.randn(11, 6, dtype=torch.float64)
    labels = torch.randint(3, (11,))
    return Watched(layers.double()), images, labels


def truth(model, images, labels):
    """Of the whole set as one batch: loss, number recognized, mistaken losses."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        scores = model(images)
    model.train(was_training)
    model.recorded.clear()
    correct = int((scores.argmax(dim=1) == labels).sum())
    loss = F.cross_entropy(scores, labels).item()
    wrong = F.cross_entropy(scores.softmax(dim=1), labels).item()
    mistaken = {
        "the sum over the images, not their mean": loss * len(images),
        "cross_entropy of probabilities: give it the scores, without softmax": wrong,
    }
    return loss, correct, mistaken


def by_batches(model, images, labels, batch_size):
    """What comes of losses that aren't summed image by image."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        scores = model(images)
    model.train(was_training)
    model.recorded.clear()
    parts = zip(scores.split(batch_size), labels.split(batch_size), strict=True)
    pairs = list(parts)
    means = [F.cross_entropy(some, of_some).item() for some, of_some in pairs]
    sums = [m * len(some) for m, (some, _) in zip(means, pairs, strict=True)]
    return {
        "the mean of the batches' means, but the last batch is smaller: weight each by "
        "its images": sum(means) / len(means),
        "the sum of the batches' means, not the mean over the images": sum(means),
        "the sum of the batches' means, divided by the number of images": (
            sum(means) / len(images)
        ),
        "the sum over the images, divided by the number of batches": (
            sum(sums) / len(means)
        ),
        "the mean of the batches' sums, with every batch as large as the first": (
            sum(means) * batch_size / len(images)
        ),
        "the mean loss of the last batch alone": means[-1],
        "the mean loss of the first batch alone": means[0],
    }


def compare(exercise, model, images, labels, batch_size, shuffle=False):
    loss, correct, mistaken = truth(model, images, labels)
    if not shuffle:
        mistaken |= by_batches(model, images, labels, batch_size)
    loader = DataLoader(TensorDataset(images, labels), batch_size, shuffle=shuffle)
    result = exercise.evaluate(model, loader)
    expect.that(
        isinstance(result, tuple) and len(result) == 3,
        "evaluate must return a tuple of three: mean loss, images recognized, images",
    )
    label = f"of 11 images in {'shuffled ' * shuffle}batches of {batch_size}"
    expect.number(result[2], len(images), f"the number {label}")
    expect.number(result[1], correct, f"the number recognized {label}")
    expect.close(result[0], loss, f"the mean loss {label}", mistaken=mistaken)
    kind = type(result[0]).__name__
    expect.that(
        isinstance(result[0], float), f"the mean loss is a {kind}, expected a float"
    )


@pytest.mark.ranks(1, init=False)
def test_one_batch(exercise, seed):
    """All images in one batch: loss, number recognized, number of images."""
    compare(exercise, *model_and_data(seed), 11)


@pytest.mark.ranks(1, init=False)
def test_smaller_last_batch(exercise, seed):
    """Each image counts once, also when the last batch is smaller."""
    for batch_size in (4, 5, 10):
        compare(exercise, *model_and_data(seed), batch_size)
    compare(exercise, *model_and_data(seed), 4, shuffle=True)


@pytest.mark.ranks(1, init=False)
def test_images_left_out_do_not_count(exercise, seed):
    """A loader with a sampler yields a part of its dataset: only this part counts."""
    model, images, labels = model_and_data(seed)
    loss, correct, _ = truth(model, images[2:9], labels[2:9])
    loader = DataLoader(TensorDataset(images, labels), 4, sampler=range(2, 9))
    found = exercise.evaluate(model, loader)
    what = "of 7 images, which the loader yields of a dataset of 11"
    expect.number(found[2], 7, f"the number {what}")
    expect.number(found[1], correct, f"the number recognized {what}")
    of_all = "the sum over the images, divided by the length of the dataset"
    mistaken = {of_all: loss * 7 / 11}
    expect.close(found[0], loss, f"the mean loss {what}", mistaken=mistaken)


@pytest.mark.ranks(1, init=False)
def test_dropout_is_off(exercise, seed):
    """Dropout must be off while measuring."""
    compare(exercise, *model_and_data(seed, nn.Dropout(0.5)), 4)


@pytest.mark.ranks(1, init=False)
def test_batch_norm_learns_nothing(exercise, seed):
    """Measuring must not change the running statistics of batch norm."""
    model, images, labels = model_and_data(seed, nn.BatchNorm1d(5))
    before = {key: value.clone() for key, value in model.state_dict().items()}
    compare(exercise, model, images, labels, 4)
    for key, value in before.items():
        expect.equal(model.state_dict()[key], value, f"{key} after measuring")


@pytest.mark.ranks(1, init=False)
def test_mode_is_put_back(exercise, seed):
    """Afterwards the model is in its old mode, whether training or evaluation."""
    model, images, labels = model_and_data(seed, nn.Dropout(0.5))
    for training in (True, False):
        model.train(training)
        exercise.evaluate(model, DataLoader(TensorDataset(images, labels), 4))
        expect.equal(
            [module.training for module in model.modules()],
            [training] * len(list(model.modules())),
            f"model.training of all modules, found as {training}, after measuring",
        )
    model.train()
    model.layers.eval()  # a part is frozen: the mode is that of the model itself
    exercise.evaluate(model, DataLoader(TensorDataset(images, labels), 4))
    what = "model.training after measuring, with a child in evaluation mode"
    expect.equal(model.training, True, what)


@pytest.mark.ranks(1, init=False)
def test_no_gradients_are_recorded(exercise, seed):
    """Recording gradients keeps all activations in memory for nothing."""
    model, images, labels = model_and_data(seed)
    exercise.evaluate(model, DataLoader(TensorDataset(images, labels), 4))
    expect.right_way(
        not any(model.recorded),
        "the model was called with gradients recorded: use torch.no_grad()",
    )


@pytest.mark.ranks(1, init=False)
def test_nothing_is_changed(exercise, seed):
    """Parameters, their gradients and the caller's grad mode are as before."""
    # the grader compares the grad mode before and after each call by itself
    model, images, labels = model_and_data(seed)
    F.cross_entropy(model(images), labels).backward()
    model.layers[0].bias.requires_grad_(False)
    before = {k: (p.grad.clone(), p.requires_grad) for k, p in named(model)}
    for recording in (True, False):
        with torch.set_grad_enabled(recording):
            exercise.evaluate(model, DataLoader(TensorDataset(images, labels), 4))
    for key, parameter in named(model):
        grad, required = before[key]
        expect.equal(parameter.grad, grad, f"{key}.grad after measuring")
        what = f"requires_grad of {key} after measuring"
        expect.equal(parameter.requires_grad, required, what)


def named(model):
    return list(model.named_parameters())
