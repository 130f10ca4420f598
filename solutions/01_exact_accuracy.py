"""Measure a model exactly: count every image once, and change nothing.

The last batch of a test set is smaller than the others, so the mean of the batches'
accuracies isn't the accuracy of the set. And measuring must leave no trace: switch
dropout and batch norm to evaluation, record no gradients, and afterwards put the model
back into the mode you found it in.

    workshop check 01_exact_accuracy

The page is docs/lessons/01_one_device/3_measure.rst.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def evaluate(model: nn.Module, loader: DataLoader) -> tuple[float, int, int]:
    """(mean loss over the images, images recognized, images).

    The loader yields inputs [B, ...] and labels [B], but not always its whole dataset:
    what it leaves out doesn't count. The model returns scores [B, classes], and the
    class with the greatest score is its answer.
    """
    # TODO 1 of 1: sum over all batches, in evaluation mode and without gradients,
    # then put the model back into its mode. cross_entropy is the mean of one batch.
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
