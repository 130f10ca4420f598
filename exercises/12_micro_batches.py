"""Send a batch through the parts in micro-batches, and keep its gradient as it was.

The network is cut into as many parts as there are ranks. With one batch in one piece
all ranks but one wait. So the batch is cut, too: as soon as the first rank has handed
over its first micro-batch, it begins with the second, while the next rank has
something to do. Weights change only after the whole batch; until then the gradients
of the micro-batches add up in ``.grad``, and so the sum must be that of the batch.

What one rank does with one micro-batch is given, in ``Stage``. When forward has run
for all of them, backward follows for all of them. Micro-batches are cut with ``chunk``,
so that the last one may be smaller.

    workshop check 12_micro_batches

The page is docs/lessons/12_model_parallel.rst.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class Stage:
    """The layers of this rank, between the rank before it and the rank after it."""

    def __init__(self, layers: nn.Module, shape: tuple[int, ...]):
        self.layers = layers
        self.shape = shape  # of what comes in for one image
        self.rank = dist.get_rank()
        self.is_first = self.rank == 0
        self.is_last = self.rank == dist.get_world_size() - 1

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What came in and what went out for one micro-batch.

        Only the first rank looks into ``images``; the others count them.
        """
        inputs = images
        if not self.is_first:
            inputs = torch.empty(len(images), *self.shape, dtype=torch.float64)
            dist.recv(inputs, src=self.rank - 1)
            inputs.requires_grad_()
        outputs = self.layers(inputs)
        if not self.is_last:
            dist.send(outputs.detach(), dst=self.rank + 1)
        return inputs, outputs

    def backward(
        self,
        inputs: torch.Tensor,
        outputs: torch.Tensor,
        loss: torch.Tensor | None = None,
    ) -> None:
        """Add the gradients of one micro-batch; only the last rank needs its loss."""
        if self.is_last:
            loss.backward()
        else:
            gradient = torch.empty_like(outputs)
            dist.recv(gradient, src=self.rank + 1)
            outputs.backward(gradient)
        if not self.is_first:
            dist.send(inputs.grad, dst=self.rank - 1)


def share_of_loss(
    scores: torch.Tensor, labels: torch.Tensor, batch_size: int
) -> torch.Tensor:
    """What one micro-batch adds to the mean cross entropy of ``batch_size`` images."""
    # TODO 1 of 2: the shares of all micro-batches must add up to F.cross_entropy of
    # the whole batch, also if they are not equally large.
    raise NotImplementedError("TODO 1 of 2")


def run_batch(
    stage: Stage, images: torch.Tensor, labels: torch.Tensor, micro_batches: int
) -> torch.Tensor | None:
    """Leave the gradients of the batch in the layers of every rank.

    The last rank returns the mean loss of the batch, the others return None.
    """
    # TODO 2 of 2: forward for all micro-batches (images.chunk, labels.chunk), then
    # backward for all. Backward needs what forward has returned for the same one.
    raise NotImplementedError("TODO 2 of 2")
