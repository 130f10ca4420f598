"""Checks of exercises/19_wrong_loss.py: the run equals one process with all batches."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DistributedSampler, TensorDataset

from grader import expect

LR, EPOCHS = 0.5, 2


def a_run(seed, world_size, batch_size=3):
    """(model, images for two steps per epoch of all ranks), equal on all ranks."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    count = 2 * batch_size * world_size
    labels = torch.randint(3, (count,))
    return model, TensorDataset(torch.randn(count, 4).double(), labels)


def alone(exercise, model, dataset, world_size, batch_size=3):
    """What one process gets with the batches of all ranks: the mean losses."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    history = []
    for epoch in range(EPOCHS):
        shares = []
        for rank in range(world_size):
            each = DistributedSampler(dataset, world_size, rank, seed=exercise.SEED)
            each.set_epoch(epoch)
            shares.append(list(each))
        losses = []
        for begin in range(0, len(shares[0]), batch_size):
            batch = [i for share in shares for i in share[begin : begin + batch_size]]
            images, labels = dataset[batch]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        history.append(sum(losses) / len(losses))
    return history


def modes_of(model):
    """Whether the model is in training mode, of each time that it computes."""
    modes = set()
    model.register_forward_pre_hook(lambda module, _: modes.add(module.training))
    return modes


@pytest.mark.ranks(3, 4)
def test_run_equals_one_process(exercise, world_size, seed):
    """The weights and the losses are those of one process with the same batches."""
    model, dataset = a_run(seed, world_size)
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
        expect.close(weight.detach(), right.detach(), f"{name} after {EPOCHS} epochs")
    expect.equal(len(found), EPOCHS, "how many losses train returns")
    for epoch, (loss, right) in enumerate(zip(found, expected, strict=True)):
        expect.close(loss, right, f"the mean loss of epoch {epoch}")
