"""Measure a model exactly: every image counts once, and nothing is changed.

The last batch of a test set is smaller than the others, so the mean of the batches'
accuracies is not the accuracy of the set. And measuring must leave no trace: dropout
and batch norm are switched to evaluation, no gradients are recorded, and afterwards
the model is in the mode in which it was found.

    workshop check 01_exact_accuracy

The page is docs/lessons/01_one_device.rst.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def evaluate(model: nn.Module, loader: DataLoader) -> tuple[float, int, int]:
    """(mean loss over the images, images recognised, images).

    The loader gives inputs [B, ...] and labels [B]; the model gives scores
    [B, classes], and the greatest one is what it recognises.
    """
    # TODO 1 of 1: sum over all batches, in evaluation mode and without gradients,
    # then put the model back into its mode. cross_entropy gives the mean of a batch.
    # [start answer 1]
    was_training = model.training
    model.eval()
    loss_sum, correct, total = 0.0, 0, 0
    with torch.no_grad():
        for inputs, labels in loader:
            scores = model(inputs)
            loss_sum += F.cross_entropy(scores, labels).item() * len(labels)
            correct += int((scores.argmax(dim=1) == labels).sum())
            total += len(labels)
    model.train(was_training)
    return loss_sum / total, correct, total
    # [end answer 1]
