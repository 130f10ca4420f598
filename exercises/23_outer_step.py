"""Take DiLoCo's outer step: agree on parameters after each rank has trained alone.

Every rank has taken some inner steps from the same parameters, ``shared``, and has its
``own`` ones now. The outer gradient g is the mean over all ranks of the differences
``shared`` minus own. SGD with Nesterov momentum steps along it::

    velocity = momentum * velocity + g
    shared = shared - learning_rate * (g + momentum * velocity)

The second line uses the velocity that the first one has just computed. Then every rank
continues from ``shared``: its own parameters become a copy of it.

    workshop check 23_outer_step

The page is docs/lessons/23_loose_coupling/1_few_messages.rst.
"""

import torch
import torch.distributed as dist
from torch import nn


def outer_gradient(
    shared: list[torch.Tensor], own: list[nn.Parameter]
) -> list[torch.Tensor]:
    """The mean over all ranks of ``shared - own``, a tensor for each parameter.

    Both lists stay as they are. Every rank calls this.
    """
    # TODO 1 of 2
    raise NotImplementedError("TODO 1 of 2")


@torch.no_grad()
def outer_step(
    shared: list[torch.Tensor],
    own: list[nn.Parameter],
    velocity: list[torch.Tensor],
    gradient: list[torch.Tensor],
    learning_rate: float,
    momentum: float,
) -> None:
    """Change ``shared``, ``velocity`` and ``own`` in place; sends nothing.

    The inner optimizer knows the parameters in ``own``, so they must remain the same
    objects. Later inner steps change them in place, and must not change ``shared``.
    """
    # TODO 2 of 2
    raise NotImplementedError("TODO 2 of 2")
