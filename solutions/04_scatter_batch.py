"""Split a batch that doesn't divide evenly, and combine the losses of its parts.

``nn.DataParallel`` splits a batch as ``Tensor.chunk`` does: 10 images on 4 devices are
3, 3, 3 and 1, so one device mostly waits; 6 images are 2, 2 and 2, and the fourth
device gets nothing. Split more evenly here.

To save the first device work and memory, many programs let each device compute the mean
loss of its own part, and gather one loss per part. If the parts are unequal, the mean
of these is *not* the mean loss of the batch, and its gradient is wrong, too.

    workshop check 04_scatter_batch

The page is docs/lessons/04_data_parallel/2_what_it_costs.rst.
"""

import torch


def scatter(
    images: torch.Tensor, labels: torch.Tensor, parts: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """At most ``parts`` pairs (images, labels); joined in order they are the batch.

    Their sizes differ by one at most, and none is empty: a batch that is smaller than
    ``parts`` gives fewer pairs. The batch has at least one image.
    """
    # TODO 1 of 2: split images and labels at the same places.
    # [start answer 1]
    used = min(parts, len(images))
    return list(zip(images.tensor_split(used), labels.tensor_split(used), strict=True))
    # [end answer 1]


def mean_loss(losses: list[torch.Tensor], sizes: list[int]) -> torch.Tensor:
    """The mean loss of the whole batch, ready for ``backward()``.

    ``losses[i]`` is the mean loss of part ``i``, a tensor without dimensions, and
    ``sizes[i]`` is the number of images in it. Leave both lists unchanged.
    """
    # TODO 2 of 2: every image counts the same, in the value and in the gradient.
    # [start answer 2]
    weights = torch.tensor(sizes, dtype=losses[0].dtype) / sum(sizes)
    return (torch.stack(losses) * weights).sum()
    # [end answer 2]
