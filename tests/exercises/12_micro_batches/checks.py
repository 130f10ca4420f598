"""Checks of exercises/12_micro_batches.py."""

import copy
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()

CUTS = {3: [0, 2, 4, 8], 4: [0, 2, 4, 6, 8]}  # world size -> where the parts begin
# images, micro-batches: chunks of 4 4 4; 3 3 3 2; 2 2 2 2 1; 5; 2 2 2 and no fourth
CASES = [(12, 3), (11, 4), (9, 5), (5, 1), (6, 4)]
SUM_OF_MEANS = (
    "the sum of the micro-batches' means: divide by the images of the whole batch, not "
    "of the micro-batch"
)
CROSSED = (
    "that of mixed-up micro-batches, because the ranks run their backwards in "
    "different orders: look"
)
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02),
}


def network(seed):
    """Layers that are not square, with biases; [B, 6] to [B, 4]."""
    torch.manual_seed(seed)
    widths = [6, 9, 5, 7, 4]
    layers = []
    for wide, out in itertools.pairwise(widths):
        layers += [nn.Linear(wide, out), nn.Tanh()]
    return nn.Sequential(*layers).double()


def batch(seed, size):
    generator = torch.Generator().manual_seed(seed + 700)
    images = torch.randn(size, 6, generator=generator, dtype=torch.float64)
    return images, torch.randint(4, (size,), generator=generator)


def stage_of(exercise, model, rank, world_size):
    start, stop = CUTS[world_size][rank : rank + 2]
    shape = tuple(model[:start](torch.zeros(1, 6, dtype=torch.float64)).shape[1:])
    return exercise.Stage(model[start:stop], shape)


def whole(model, images, labels):
    """(loss, gradient of each parameter) in one process."""
    alone = copy.deepcopy(model)
    loss = F.cross_entropy(alone(images), labels)
    loss.backward()
    return loss, {k: p.grad for k, p in alone.named_parameters()}


def gradients_of(model, images, labels, micro_batches, which):
    """Those of the share of one micro-batch, by the names of a stage's layers."""
    alone, size = copy.deepcopy(model), len(images)
    x, y = images.chunk(micro_batches)[which], labels.chunk(micro_batches)[which]
    (F.cross_entropy(alone(x), y, reduction="sum") / size).backward()
    return {k: p.grad for k, p in alone.named_parameters()}


def of_means(model, images, labels, micro_batches):
    """(loss, gradients) if each micro-batch adds its own mean."""
    alone = copy.deepcopy(model)
    chunks = images.chunk(micro_batches), labels.chunk(micro_batches)
    loss = sum(F.cross_entropy(alone(x), y) for x, y in zip(*chunks, strict=True))
    loss.backward()
    return loss.detach(), {k: p.grad for k, p in alone.named_parameters()}


def crossed(model, start, images, labels, micro_batches):
    """Gradients before layer ``start``, if it sends those of the last one first."""
    alone, held = copy.deepcopy(model), []
    chunks = images.chunk(micro_batches), labels.chunk(micro_batches)
    for x, y in zip(*chunks, strict=True):
        outputs = alone[:start](x)
        inputs = outputs.detach().requires_grad_()
        loss = F.cross_entropy(alone[start:](inputs), y, reduction="sum")
        held.append((outputs, torch.autograd.grad(loss / len(images), inputs)[0]))
    for (outputs, _), (_, gradient) in zip(held, held[::-1], strict=True):
        outputs.backward(gradient)
    return {name: p.grad for name, p in alone.named_parameters()}


@pytest.mark.ranks(1)
def test_shares_of_the_loss(exercise, seed):
    """The shares of the micro-batches add up to the mean loss of the batch."""
    for size, micro_batches in CASES:
        images, labels = batch(seed, size)
        scores = network(seed)(images)
        parts = list(
            zip(scores.chunk(micro_batches), labels.chunk(micro_batches), strict=True)
        )
        shares = [exercise.share_of_loss(x, y, size) for x, y in parts]
        means = torch.stack([F.cross_entropy(x, y) for x, y in parts])
        expect.close(
            sum(shares),
            F.cross_entropy(scores, labels),
            f"the sum of {micro_batches} shares of {size} images",
            mistaken={
                "the sum of the micro-batches' means": means.sum(),
                "the mean of the micro-batches' means": means.mean(),
                "the sum of the means, divided by the number of classes": (
                    means.sum() / scores.shape[1]
                ),
                "the sum of the means, each divided by the rounded number of "
                "micro-batches of its size": sum(
                    mean / round(size / len(x))
                    for mean, (x, _) in zip(means, parts, strict=True)
                ),
                "the sum of the means, each divided by the number of micro-batches of "
                "its size, rounded up": sum(
                    mean / math.ceil(size / len(x))
                    for mean, (x, _) in zip(means, parts, strict=True)
                ),
                "the sum of the micro-batches' means, divided by the batch size": (
                    means.sum() / size
                ),
                "the sum over all images: divide it by batch_size": (
                    F.cross_entropy(scores, labels, reduction="sum")
                ),
                "the mean, divided once more by the number of classes": (
                    F.cross_entropy(scores, labels) / scores.shape[1]
                ),
                "the mean, divided once more by the number of micro-batches": (
                    F.cross_entropy(scores, labels) / len(parts)
                ),
            },
        )


@pytest.mark.ranks(3, 4)
def test_gradients_of_the_batch(exercise, rank, world_size, seed):
    """Loss and gradients are those of the whole batch in one process."""
    for size, micro_batches in CASES:
        model = network(seed)
        images, labels = batch(seed, size)
        loss, gradients = whole(model, images, labels)
        means, of_the_means = of_means(model, images, labels, micro_batches)
        stage = stage_of(exercise, model, rank, world_size)
        found = exercise.run_batch(stage, images, labels, micro_batches)
        where = f"({size} images in {micro_batches} micro-batches)"
        if rank == world_size - 1:
            scores, last = model(images), len(images.chunk(micro_batches)[-1])
            share = F.cross_entropy(scores[-last:], labels[-last:]) * last / size
            mistaken = {
                SUM_OF_MEANS: means,
                "the mean, divided once more by the number of micro-batches": (
                    loss / micro_batches
                ),
                "the share of the last micro-batch alone": share,
                "the mean over the images of the last micro-batch": share * size / last,
                "the sum of the images' losses": loss * size,
            }
            expect.close(found, loss, f"the loss {where}", mistaken=mistaken)
        else:
            expect.that(found is None, "only the last rank has a loss to return")
        expect.still_training(stage.layers, "the layers are")
        alone = {
            f"that of {SUM_OF_MEANS}": of_the_means,
            "that of the last micro-batch alone: are the others kept until backward?": (
                gradients_of(model, images, labels, micro_batches, -1)
            ),
            "that of the first micro-batch alone": (
                gradients_of(model, images, labels, micro_batches, 0)
            ),
        }
        found = []
        if (size, micro_batches) == CASES[0]:
            cuts = CUTS[world_size][rank + 1 : -1]
            found = [crossed(model, cut, images, labels, micro_batches) for cut in cuts]
        for name, parameter in stage.layers.named_parameters():
            what = f"the gradient of {name} {where}"
            expect.that(parameter.grad is not None, f"{what} is None")
            mistaken = {
                f"{CROSSED} at rank {i}": g[name] for i, g in enumerate(found, rank + 1)
            }
            mistaken |= {words: of_one[name] for words, of_one in alone.items()}
            if torch.equal(of_the_means[name], gradients[name]):  # one micro-batch
                del mistaken[f"that of {SUM_OF_MEANS}"]
            expect.close(parameter.grad, gradients[name], what, mistaken=mistaken)


@pytest.mark.ranks(4)
def test_gradients_add_to_what_is_there(exercise, rank, world_size, seed):
    """A second batch, with no step in between, adds to the first one's gradients."""
    model, total, last = network(seed), {}, {}
    stage = stage_of(exercise, model, rank, world_size)
    for number in range(2):
        images, labels = batch(seed + number, 11)
        last = whole(model, images, labels)[1]
        for name, grad in last.items():
            total[name] = grad + total.get(name, 0)
        exercise.run_batch(stage, images, labels, 4)
    for name, parameter in stage.layers.named_parameters():
        mistaken = {"that of the last batch alone: add to what is there": last[name]}
        what = f"{name}.grad of two batches"
        expect.close(parameter.grad, total[name], what, mistaken=mistaken)


@pytest.mark.ranks(3)
def test_three_steps(exercise, rank, world_size, seed):
    """Three steps give the weights of the network in one process."""
    for name, make in OPTIMIZERS.items():
        model, alone = network(seed), network(seed)
        stage = stage_of(exercise, model, rank, world_size)
        mine, theirs = make(stage.layers.parameters()), make(alone.parameters())
        for step in range(3):
            images, labels = batch(seed + step, 11)
            mine.zero_grad()
            exercise.run_batch(stage, images, labels, 4)
            mine.step()
            theirs.zero_grad()
            F.cross_entropy(alone(images), labels).backward()
            theirs.step()
        expected = dict(alone.named_parameters())
        for key, parameter in stage.layers.named_parameters():
            expect.close(parameter, expected[key], f"{key} after 3 steps, {name}")


@pytest.mark.ranks(4)
def test_ranks_work_side_by_side(exercise, rank, world_size, seed, ledger):
    """All forwards run before the first backward, with one message per micro-batch."""
    stage = stage_of(exercise, network(seed), rank, world_size)
    seen = {}
    for size, asked in ((12, 6), (6, 4), (11, 4)):  # 6, 3 and 4 micro-batches
        ledger.clear()
        exercise.run_batch(stage, *batch(seed, size), asked)
        seen[size, asked] = [row.op for row in ledger.rows if row.peer == rank + 1]
    if rank == world_size - 1:
        return
    for (size, asked), to_next in seen.items():
        cut = len(torch.empty(size).chunk(asked))
        expect.right_way(
            to_next.count("send") == to_next.count("recv") == cut,
            f"this rank sent {to_next.count('send')} times to the next and received "
            f"{to_next.count('recv')} times from it; with {cut} micro-batches it is "
            f"{cut} and {cut} (chunk cuts {size} images into {cut} if you ask for "
            f"{asked})",
        )
        before = to_next.index("recv")
        expect.right_way(
            before == cut,
            f"this rank waits for a gradient after {before} of {cut} micro-batches: "
            "send all of them first, or the ranks take turns as without micro-batches",
        )
