"""Checks of exercises/01_training_loop.py."""

import copy
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def model_and_batches(seed, count):
    """A small float64 network and ``count`` micro-batches of 4 images.

    Its gradients are longer than 1, so that clipping them to that length shows.
    """
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)).double()
    batches = [
        (5 * torch.randn(4, 5, dtype=torch.float64), torch.randint(3, (4,)))
        for _ in range(count)
    ]
    return model, batches


def reference(model, optimizer, batches, accumulate):
    """Each group as one batch; the losses of its micro-batches are not computed."""
    for first in range(0, len(batches), accumulate):
        inputs, targets = zip(*batches[first : first + accumulate], strict=True)
        optimizer.zero_grad()
        F.cross_entropy(model(torch.cat(inputs)), torch.cat(targets)).backward()
        optimizer.step()


def bitwise_reference(model, optimizer, batches, accumulate, divided=False):
    """Each group micro-batch by micro-batch, as the exercise asks for.

    ``divided``: return the mean of what was divided for backward.
    """
    losses = []
    for first in range(0, len(batches), accumulate):
        group = batches[first : first + accumulate]
        optimizer.zero_grad()
        for inputs, targets in group:
            loss = F.cross_entropy(model(inputs), targets)
            losses.append(loss.item() / (len(group) if divided else 1))
            (loss / len(group)).backward()
        optimizer.step()
    return sum(losses) / len(losses)


def by_mistake(divisor, last_alone=False):
    """As the reference, with another divisor (of a group's size and accumulate)."""

    def way(model, optimizer, batches, accumulate):
        for first in range(0, len(batches), accumulate):
            group = batches[first : first + accumulate]
            optimizer.zero_grad()
            for inputs, targets in group[-1:] if last_alone else group:
                loss = F.cross_entropy(model(inputs), targets)
                (loss / divisor(len(group), accumulate)).backward()
            optimizer.step()

    return way


def whole_groups(model, optimizer, batches, accumulate):
    reference(
        model, optimizer, batches[: len(batches) // accumulate * accumulate], accumulate
    )


MISTAKEN = {
    "that of losses which aren't divided": by_mistake(lambda size, accumulate: 1),
    "that of losses divided by accumulate in the smaller group, too": by_mistake(
        lambda size, accumulate: accumulate
    ),
    "that of the last micro-batch of each group alone": by_mistake(
        lambda size, accumulate: size, last_alone=True
    ),
    "that without a step for the smaller group": whole_groups,
}


def two_epochs(way, make_optimizer, count, accumulate, seed):
    """(the trained model, the mean that ``way`` returned last)"""
    model, batches = model_and_batches(seed, count)
    optimizer = make_optimizer(model.parameters())
    means = [way(model, optimizer, batches, accumulate) for _ in range(2)]
    expect.still_training(model, "train_epoch")
    return model, means[-1]


def train_both(exercise, way, count, accumulate, seed, compare):
    """Two epochs in the learner's loop and in the reference; compare all weights."""
    for name, make_optimizer in OPTIMIZERS.items():
        how = make_optimizer, count, accumulate, seed
        model, found = two_epochs(exercise.train_epoch, *how)
        expected, mean = two_epochs(way, *how)
        pairs = list(zip(model.parameters(), expected.parameters(), strict=True))
        others = {}
        if not all(torch.allclose(a, b) for a, b in pairs):
            others = {words: two_epochs(w, *how)[0] for words, w in MISTAKEN.items()}
        for (key, a), (_, b) in zip(model.named_parameters(), pairs, strict=True):
            label = f"{key} after {count} micro-batches in groups of {accumulate}"
            likely = {
                words: other.get_parameter(key) for words, other in others.items()
            }
            if likely:
                expect.close(a, b, f"{label}, {name}", mistaken=likely)
            compare(a, b, f"{label}, {name}")
        if mean is not None:
            _, divided = two_epochs(partial(bitwise_reference, divided=True), *how)
            changed = (
                "that of the divided losses: `loss /= size` also changes the tensor "
                "that `losses` holds"
            )
            what = "the mean loss that train_epoch returns"
            expect.close(found, mean, what, mistaken={changed: divided})


@pytest.mark.ranks(1, init=False)
def test_size_of_each_group(exercise):
    """group_size is accumulate, and what is left in the last group."""
    for total, accumulate in [(6, 3), (7, 3), (8, 3), (2, 5), (5, 1), (9, 4)]:
        whole, rest = divmod(total, accumulate)
        expected = [accumulate] * (whole * accumulate) + [rest] * rest
        sizes = [exercise.group_size(i, total, accumulate) for i in range(total)]
        expect.equal(
            sizes, expected, f"the sizes for {total} in groups of {accumulate}"
        )
        expect.number(sizes[0], expected[0], f"the sizes for {total}, the first,")


@pytest.mark.ranks(1, init=False)
def test_one_step_for_each_micro_batch(exercise, seed):
    """With accumulate=1 it is the plain loop: zero_grad, backward, step."""
    train_both(exercise, bitwise_reference, 4, 1, seed, expect.equal)


@pytest.mark.ranks(1, init=False)
def test_group_trains_like_one_large_batch(exercise, seed):
    """A group of 3 micro-batches gives the step of one batch three times as large."""
    train_both(exercise, reference, 6, 3, seed, expect.close)


@pytest.mark.ranks(1, init=False)
def test_incomplete_last_group_counts(exercise, seed):
    """The last group holds fewer micro-batches; it is divided by its own size."""
    train_both(exercise, reference, 7, 3, seed, expect.close)
    train_both(exercise, reference, 8, 3, seed, expect.close)
    train_both(exercise, reference, 2, 5, seed, expect.close)
    train_both(exercise, reference, 5, 3, seed, expect.close)


@pytest.mark.ranks(1, init=False)
def test_bit_for_bit(exercise, seed):
    """With groups of 2, the weights match those of a plain loop bit for bit."""
    train_both(exercise, bitwise_reference, 7, 2, seed, expect.equal)


@pytest.mark.ranks(1, init=False)
def test_leftover_gradient_does_not_count(exercise, seed):
    """What .grad holds at the call must not change the result."""
    model, batches = model_and_batches(seed, 5)
    expected = copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 3.0)
    mine, theirs = (OPTIMIZERS["SGD"](m.parameters()) for m in (model, expected))
    exercise.train_epoch(model, mine, batches, 2)
    reference(expected, theirs, batches, 2)
    for (key, a), b in zip(
        model.named_parameters(), expected.parameters(), strict=True
    ):
        expect.close(a, b, f"{key} when .grad held leftovers")
