"""Checks of exercises/04_scatter_batch.py."""

import pytest
import torch
import torch.nn.functional as F

from workshop.grader import expect

CASES = [(12, 4), (10, 4), (9, 4), (6, 4), (7, 3), (11, 8), (5, 1)]  # images, parts
SMALL = [(3, 4), (1, 4), (2, 3)]
NEAR = {"atol": 1e-6, "rtol": 1e-6}  # weights may be float32, mistakes are greater


def batch(seed, size):
    generator = torch.Generator().manual_seed(seed + 1000 * size)
    images = torch.randn(size, 2, 3, generator=generator, dtype=torch.float64)
    return images, torch.randint(3, (size,), generator=generator)


def compare_parts(exercise, seed, size, parts, used):
    images, labels = batch(seed, size)
    found = exercise.scatter(images, labels, parts)
    label = f"{size} images in {parts} parts"
    expect.that(found is not None, "scatter returned None: is a `return` missing?")
    kind = type(found).__name__
    is_list = isinstance(found, (list, tuple))
    expect.that(is_list, f"scatter returned a {kind}, expected a list")
    pairs = all(isinstance(p, (tuple, list)) and len(p) == 2 for p in found)
    expect.that(pairs, f"{label}: scatter must return pairs (images, labels)")
    one = any(torch.is_tensor(part) and part.dim() == 0 for p in found for part in p)
    expect.that(not one, f"{label}: a part has one label for all of its images")
    sizes = [len(part) for part, _ in found]
    expect.equal(
        [len(part) for _, part in found], sizes, f"{label}: the numbers of labels"
    )
    expect.equal(sum(sizes), size, f"{label}: the images of all parts {sizes} together")
    expect.that(min(sizes) > 0, f"{label}: {sizes}, so there is a part without images")
    expect.equal(len(sizes), used, f"{label}: the number of parts, which are {sizes}")
    expect.that(
        max(sizes) - min(sizes) <= 1, f"{label}: {sizes} differ by more than one"
    )
    expect.close(torch.cat([p for p, _ in found]), images, f"{label}: images joined")
    expect.equal(torch.cat([p for _, p in found]), labels, f"{label}: labels joined")


@pytest.mark.ranks(1, init=False)
def test_parts(exercise, seed):
    """The parts differ by one image at most, and joined in order they are the batch."""
    for size, parts in CASES:
        compare_parts(exercise, seed, size, parts, parts)


@pytest.mark.ranks(1, init=False)
def test_small_batches(exercise, seed):
    """A batch with fewer images than parts gives fewer parts, and none is empty."""
    for size, parts in SMALL:
        compare_parts(exercise, seed, size, parts, size)


def losses(seed, sizes):
    """(loss and gradient of the whole batch, weights, losses of parts)."""
    images, labels = batch(seed, sum(sizes))
    weights = torch.randn(6, 3, generator=torch.Generator().manual_seed(seed)).double()
    weights.requires_grad_()

    def loss(images, labels):
        return F.cross_entropy(images.flatten(1) @ weights, labels)

    whole = loss(images, labels)
    (gradient,) = torch.autograd.grad(whole, weights)
    pairs = zip(images.split(sizes), labels.split(sizes), strict=True)
    return whole.detach(), gradient, weights, [loss(*pair) for pair in pairs]


@pytest.mark.ranks(1, init=False)
def test_loss(exercise, seed):
    """The mean loss is that of the whole batch, for equal and unequal parts."""
    for sizes in ([4, 4, 4], [3, 3, 3, 1], [2, 9], [1, 2, 5, 1], [7]):
        whole, _, _, parts = losses(seed, sizes)
        mean = torch.stack(parts).mean().detach()
        before, given = torch.stack(parts).detach(), list(sizes)
        found = exercise.mean_loss(parts, given)
        expect.equal(len(parts), len(sizes), "losses in the list that was passed")
        after = torch.stack(parts).detach()
        expect.unchanged(after, before, "the losses that were passed")
        expect.equal(given, sizes, "the sizes that were passed")
        mistaken = {
            "the mean of the parts' means": mean,
            "the sum over the images, not their mean": whole * sum(sizes),
            "the sum of the parts' means": mean * len(sizes),
            "the sum over the images, divided by the number of parts times the size of "
            "the first": whole * sum(sizes) / (sizes[0] * len(sizes)),
            "the sum over the images, divided by the number of parts times the "
            "largest size": whole * sum(sizes) / (max(sizes) * len(sizes)),
        }
        label = f"the loss of parts of {sizes} images"
        expect.close(found, whole, label, mistaken=mistaken, **NEAR)


@pytest.mark.ranks(1, init=False)
def test_gradient(exercise, seed):
    """After backward the gradient is that of the whole batch."""
    for sizes in ([3, 3, 3, 1], [2, 9]):
        _, gradient, weights, parts = losses(seed, sizes)
        found = exercise.mean_loss(parts, sizes)
        attached = torch.is_tensor(found) and found.requires_grad
        expect.that(
            attached, "the loss is cut off from the weights: backward() cannot use it"
        )
        found.backward()
        label = f"the gradient of parts of {sizes} images"
        expect.close(weights.grad, gradient, label, **NEAR)
