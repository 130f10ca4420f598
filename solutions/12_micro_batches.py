"""Send a batch through the parts in micro-batches, with the same gradient.

The network is cut into as many parts as there are ranks. If the batch goes through in
one piece, all ranks except one wait. So you cut the batch as well: as soon as the first
rank has sent its first micro-batch, it starts on the second, while the next rank works
on the first. The weights change only after the whole batch. Until then the gradients of
the micro-batches add up in ``.grad``, and their sum must be that of the batch.

``Stage`` is given: it does what one rank does with one micro-batch. First run forward
for all micro-batches, then backward for all. Cut them with ``chunk``. The last one may
then be smaller, and there may be fewer than you asked for: 6 images in 4 micro-batches
are 2, 2 and 2.

    workshop check 12_micro_batches

The page is docs/lessons/12_model_parallel/2_idle.rst.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class Stage:
    """The layers of this rank, between the rank before it and the rank after it."""

    def __init__(self, layers: nn.Module, shape: tuple[int, ...]):
        self.layers = layers
        self.shape = shape  # of the input for one image
        self.rank = dist.get_rank()
        self.is_first = self.rank == 0
        self.is_last = self.rank == dist.get_world_size() - 1

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The input and the output of this part for one micro-batch.

        Only the first rank reads ``images``; the others only count them.
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
    # the whole batch, even if the micro-batches have different sizes.
    # [start answer 1]
    return F.cross_entropy(scores, labels, reduction="sum") / batch_size
    # [end answer 1]


def run_batch(
    stage: Stage, images: torch.Tensor, labels: torch.Tensor, micro_batches: int
) -> torch.Tensor | None:
    """Add the gradients of the batch to those that every rank's layers have already.

    The last rank returns the mean loss of the batch, the others return None.
    """
    # TODO 2 of 2: forward for all micro-batches (images.chunk, labels.chunk), then
    # backward for all. Backward needs what forward returned for the same micro-batch.
    # [start answer 2]
    waiting = []
    parts = zip(images.chunk(micro_batches), labels.chunk(micro_batches), strict=True)
    for part, part_labels in parts:
        inputs, outputs = stage.forward(part)
        loss = None
        if stage.is_last:
            loss = share_of_loss(outputs, part_labels, len(labels))
        waiting.append((inputs, outputs, loss))
    for inputs, outputs, loss in waiting:
        stage.backward(inputs, outputs, loss)
    return sum(loss.detach() for *_, loss in waiting) if stage.is_last else None
    # [end answer 2]
