"""Collect the loss and throughput of an epoch over all ranks, at little cost.

Rank 0 sees only the loss of its own images. You want the loss over the images of all
ranks, in which a rank with smaller batches counts for less. A collective after every
batch would make all ranks wait once more per step. So a ``Meter`` adds up on its own
rank, and ranks communicate only when ``read`` is called, by two collectives at most::

    meter = Meter()
    for images, labels in loader:
        ...
        meter.update(loss, len(labels))
    meter.read(seconds)  # in the middle of an epoch, or at its end

``read()`` may be called more than once; what is already counted stays counted, once.
Its throughput is all images of all ranks divided by the seconds of the slowest rank,
because the others wait for it.

    workshop check 05_metrics

The page is docs/lessons/05_ddp_spawn/4_measure.rst.
"""

import torch
import torch.distributed as dist


class Meter:
    """Adds up on one rank; ``read`` adds up over the ranks."""

    def __init__(self):
        # [sum of the losses of all images, number of images]
        self.sums = torch.zeros(2, dtype=torch.float64)

    def update(self, mean_loss: torch.Tensor, images: int) -> None:
        """Count a batch of this rank: no communication, and no graph is kept.

        Args:
            mean_loss: [], the mean over the images of the batch, as loss functions
                return it; part of a graph. Leave it unchanged.
            images: the number of images in the batch.
        """
        # TODO 1 of 2: add to self.sums.
        raise NotImplementedError("TODO 1 of 2")

    def read(self, seconds: float) -> dict[str, float]:
        """The numbers of all ranks so far; every rank must call this.

        Args:
            seconds: how long this rank has trained.

        Returns:
            The same dict on every rank: ``loss``, the mean over all images;
            ``images``, how many; ``images_per_s``.
        """
        # TODO 2 of 2: the sums over the ranks, and the seconds of the slowest.
        raise NotImplementedError("TODO 2 of 2")
