"""Cut a network in two: send activations one way and their gradient back.

Two ranks hold one network. One has the first layers and the images, the other has the
last layers and the labels. Autograd works within one process, so at the cut you do its
work: send a tensor of plain numbers forward, and send back how the loss changes with
each of them.

``run_first`` and ``run_second`` are called at the same time, each in its own rank, with
the rank of the other one. When both have returned, the parameters of both parts hold
the gradients of the whole network's loss, as one process would have computed them, and
``run_second`` has returned that loss. All numbers are float64.

    workshop check 12_split_network

The page is docs/lessons/12_model_parallel/1_two_devices.rst.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


def run_first(layers: nn.Module, images: torch.Tensor, other: int) -> None:
    """Forward and backward of the first layers; ``other`` has the last ones."""
    # TODO 1 of 2: compute the activations, send their numbers, receive how the loss
    # changes with each of them, and continue backward from there.
    raise NotImplementedError("TODO 1 of 2")


def run_second(
    layers: nn.Module, labels: torch.Tensor, shape: tuple[int, ...], other: int
) -> torch.Tensor:
    """Forward and backward of the last layers; the mean loss of the batch.

    ``shape`` is that of one image's activations; there are as many images as labels.
    """
    # TODO 2 of 2: receive the activations, compute the loss (F.cross_entropy) and all
    # gradients, send back what the other rank waits for, and return the loss.
    raise NotImplementedError("TODO 2 of 2")
