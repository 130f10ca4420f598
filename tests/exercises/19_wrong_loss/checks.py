"""Checks of exercises/19_wrong_loss.py: the run equals one process with all batches."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DistributedSampler, TensorDataset

from workshop.grader import expect

LR, EPOCHS = 0.5, 2


def a_run(seed, world_size, batch_size=3):
    """(model, images for two steps per epoch of all ranks), equal on all ranks."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    count = 2 * batch_size * world_size
    labels = torch.randint(3, (count,))
    return model, TensorDataset(torch.randn(count, 4).double(), labels)


def alone(exercise, model, dataset, world_size, wrong=""):
    """What one process gets with the batches of all ranks: the mean losses.

    ``wrong`` says which line of the loop to do wrong, if any.
    """
    batch_size = 3
    lr = LR * world_size if wrong == "summed" else LR
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    history = []
    for epoch in range(EPOCHS):
        shares = []
        for rank in range(world_size):
            each = DistributedSampler(dataset, world_size, rank, seed=exercise.SEED)
            each.set_epoch(0 if wrong == "same order" else epoch)
            shares.append(list(each))
        losses = []
        for begin in range(0, len(shares[0]), batch_size):
            batch = [i for share in shares for i in share[begin : begin + batch_size]]
            images, labels = dataset[batch]
            if wrong != "never zeroed":
                optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        history.append(sum(losses) / len(losses))
    return history


WRONG = {
    "summed": "that of gradients N times too large, as of a sum over the N ranks",
    "same order": "that of a run with the same order of images in each epoch",
    "never zeroed": "that of a run whose gradients are never zeroed",
}


def mistaken_weights(exercise, model, dataset, world_size):
    """For each parameter, what :func:`expect.close` calls a weight."""
    models = {words: copy.deepcopy(model) for words in WRONG.values()}
    for wrong, words in WRONG.items():
        alone(exercise, models[words], dataset, world_size, wrong)
    states = {words: one.state_dict() for words, one in models.items()}
    names = [name for name, _ in model.named_parameters()]
    return {n: {words: state[n] for words, state in states.items()} for n in names}


def modes_of(model):
    """Whether the model is in training mode, of each time that it computes."""
    modes = set()
    model.register_forward_pre_hook(lambda module, _: modes.add(module.training))
    return modes


@pytest.mark.ranks(3, 4)
def test_run_equals_one_process(exercise, world_size, seed):
    """The weights and the losses are those of one process with the same batches."""
    model, dataset = a_run(seed, world_size)
    mistaken = mistaken_weights(exercise, model, dataset, world_size)
    reference = copy.deepcopy(model)
    expected = alone(exercise, reference, dataset, world_size)
    modes = modes_of(model)
    found = exercise.train(model, dataset, EPOCHS, 3, LR)
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
    for epoch, (loss, right) in enumerate(zip(found, expected, strict=True)):
        so_far = {
            "the mean loss of all epochs so far": sum(expected[: epoch + 1])
            / (epoch + 1)
        }
        what = f"the mean loss of epoch {epoch}"
        expect.close(loss, right, what, mistaken=so_far)
