"""Checks of exercises/19_wrong_loss.py: the run equals one process with all batches."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DistributedSampler, TensorDataset

from workshop.grader import expect

expect.nothing_is_averaged()  # each value says itself what was divided wrongly
LR, EPOCHS, BATCH = 0.5, 2, 5  # a batch isn't as many images as there are ranks


def a_run(seed, world_size):
    """(model, images for two steps per epoch of all ranks), equal on all ranks."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    count = 2 * BATCH * world_size
    labels = torch.randint(3, (count,))
    return model, TensorDataset(torch.randn(count, 4).double(), labels)


def order_of(dataset, world_size, rank, epoch, seed, wrong):
    """The numbers of the images that this rank trains on in this epoch."""
    if wrong == "not divided":
        return list(range(len(dataset)))
    seed = 0 if wrong == "seed" else seed
    shuffle = wrong != "shuffle"
    each = DistributedSampler(dataset, world_size, rank, shuffle=shuffle, seed=seed)
    each.set_epoch({"same order": 0, "next order": epoch + 1}.get(wrong, epoch))
    return list(each)


def alone(exercise, model, dataset, world_size, wrong=""):
    """What one process gets with the batches of all ranks.

    Returns:
        For each epoch the losses [steps, W] of the ranks' batches.

    ``wrong`` says which line of the loop to do wrong, if any.
    """
    factor = {"summed": world_size, "divided twice": 1 / world_size}.get(wrong, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR * factor)
    history = []
    for epoch in range(EPOCHS):
        shares = [
            order_of(dataset, world_size, rank, epoch, exercise.SEED, wrong)
            for rank in range(world_size)
        ]
        losses = []
        for begin in range(0, len(shares[0]), BATCH):
            forgotten = wrong == "zeroed once" and begin > 0
            if wrong != "never zeroed" and not forgotten:
                optimizer.zero_grad()
            parts = [dataset[share[begin : begin + BATCH]] for share in shares]
            of_ranks = torch.stack([F.cross_entropy(model(x), y) for x, y in parts])
            of_ranks.mean().backward()
            optimizer.step()
            losses.append(of_ranks.detach())
        history.append(torch.stack(losses))
    return history


WRONG = {
    "summed": "that of gradients N times too large, as of a sum over the N ranks",
    "divided twice": "that of gradients divided by the number of ranks twice: DDP has "
    "averaged them",
    "same order": "that of a run with the same order of images in each epoch",
    "next order": "that of a run whose sampler is one epoch ahead: the first is 0",
    "seed": "that of a run whose sampler has another seed than SEED",
    "shuffle": "that of a run whose sampler doesn't shuffle",
    "not divided": "that of a run in which every rank trains on all images, in the "
    "dataset's order: the loader has no sampler",
    "never zeroed": "that of a run whose gradients are never zeroed",
    "zeroed once": "that of a run whose gradients are zeroed once per epoch, not in "
    "every step",
}


def mean_of_copies(copies):
    """The state of a model with the mean of the copies' weights."""
    states = [each.state_dict() for each in copies]
    names = states[0]
    return {n: torch.stack([state[n] for state in states]).mean(dim=0) for n in names}


def trained_apart(exercise, model, dataset, world_size, every):
    """The mean state of copies that each rank trained alone, for ``every`` epochs."""
    copies = [copy.deepcopy(model) for _ in range(world_size)]
    for epoch in range(EPOCHS):
        for rank, own in enumerate(copies):
            optimizer = torch.optim.SGD(own.parameters(), lr=LR)
            share = order_of(dataset, world_size, rank, epoch, exercise.SEED, "")
            for begin in range(0, len(share), BATCH):
                images, labels = dataset[share[begin : begin + BATCH]]
                optimizer.zero_grad()
                F.cross_entropy(own(images), labels).backward()
                optimizer.step()
        if (epoch + 1) % every == 0:
            mean = mean_of_copies(copies)
            for own in copies:
                own.load_state_dict(mean)
    return mean_of_copies(copies)


APART = {
    "that of a run that averages the weights once per epoch: average the gradients in "
    "every step": 1,
    "that of a run that averages the weights once at the end: average the gradients in "
    "every step": EPOCHS,
}


def mistaken_weights(exercise, model, dataset, world_size):
    """For each parameter, what :func:`expect.close` calls a weight."""
    models = {words: copy.deepcopy(model) for words in WRONG.values()}
    for wrong, words in WRONG.items():
        alone(exercise, models[words], dataset, world_size, wrong)
    states = {words: one.state_dict() for words, one in models.items()}
    for words, every in APART.items():
        states[words] = trained_apart(exercise, model, dataset, world_size, every)
    names = [name for name, _ in model.named_parameters()]
    return {n: {words: state[n] for words, state in states.items()} for n in names}


def mistaken_losses(epochs, epoch, rank):
    """What :func:`expect.close` calls the mean loss of an epoch."""
    losses, ranks = epochs[epoch], epochs[epoch].shape[1]
    mean = losses.mean()
    found = {
        "this rank's own mean loss: it wasn't reduced over the ranks": (
            losses[:, rank].mean()
        ),
        "the mean divided by the number of ranks once more": mean / ranks,
        "the mean times the number of ranks: a sum over them": mean * ranks,
        "the mean divided by the batch size: the loss of a batch is a mean already, "
        "so multiply it by len(labels)": mean / BATCH,
        "the sum of the losses of the steps": mean * len(losses),
        "the mean loss of the last step alone": losses[-1].mean(),
        "rank 0's mean loss": losses[:, 0].mean(),
    }
    if epoch:
        so_far = torch.stack(epochs[: epoch + 1]).mean()
        found["the mean loss of all epochs so far"] = so_far
    return found


def modes_of(model):
    """Whether the model is in training mode, of each time that it computes."""
    modes = set()
    model.register_forward_pre_hook(lambda module, _: modes.add(module.training))
    return modes


@pytest.mark.ranks(3, 4)
def test_run_equals_one_process(exercise, rank, world_size, seed):
    """The weights and the losses are those of one process with the same batches."""
    model, dataset = a_run(seed, world_size)
    mistaken = mistaken_weights(exercise, model, dataset, world_size)
    reference = copy.deepcopy(model)
    expected = alone(exercise, reference, dataset, world_size)
    modes = modes_of(model)
    found = exercise.train(model, dataset, EPOCHS, BATCH, LR)
    expect.that(
        False not in modes,
        "the model was in evaluation mode while it was trained: dropout would be off",
    )
    for (name, weight), right in zip(
        model.named_parameters(), reference.parameters(), strict=True
    ):
        expect.same_on_all_ranks(weight.detach(), f"{name} after {EPOCHS} epochs")
        what = f"{name} after {EPOCHS} epochs"
        expect.close(weight.detach(), right.detach(), what, mistaken=mistaken[name])
    expect.equal(len(found), EPOCHS, "how many losses train returns")
    for epoch, (loss, losses) in enumerate(zip(found, expected, strict=True)):
        mistaken_loss = mistaken_losses(expected, epoch, rank)
        what = f"the mean loss of epoch {epoch}"
        expect.close(loss, losses.mean(), what, mistaken=mistaken_loss)


def images_of(model):
    """How many images the model has computed on this rank, in a list of one number."""
    seen = [0]

    def count(module, args):
        seen[0] += len(args[0])

    model.register_forward_pre_hook(count)
    return seen


@pytest.mark.ranks(3)
def test_ranks_share_the_work(exercise, rank, world_size, seed, ledger):
    """Each rank computes its own images, and gradients are sent in every step."""
    model, dataset = a_run(seed, world_size)
    images, share = images_of(model), EPOCHS * len(dataset) // world_size
    exercise.train(model, dataset, EPOCHS, BATCH, LR)
    expect.right_way(
        images[0] <= share,
        f"this rank computed {images[0]} images in {EPOCHS} epochs, but its share is "
        f"{share}: keep the sampler, which divides them among the ranks",
    )
    size, steps = sum(p.numel() for p in model.parameters()), share // BATCH
    reducing = "all_reduce", "reduce", "reduce_scatter", "all_gather", "gather"
    sent = sum(row.elements for row in ledger.rows if row.op.startswith(reducing))
    expect.right_way(
        sent >= steps * size,
        f"this rank passed {sent} numbers to collectives in {steps} steps of a model "
        f"with {size} gradients: keep the collectives, which DDP calls in backward",
    )
