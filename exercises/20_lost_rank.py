"""A lost rank without a restart: the ranks that are left finish every step.

N ranks train one model, each with a copy. Any of them may be lost at any moment, even
inside a collective. Then the others take the step again, with the whole batch, and
continue as a smaller group. ``run`` knows who is left::

    members = run.begin()  # the ranks of this attempt at a step, in ascending order
    run.add_up(tensor)     # in place, over the members
    run.all_well(well)     # whether every member says True, and none is lost

* All members get the same list from ``begin``.
* ``add_up`` raises ``ConnectionError`` if a member is lost. One rank may get this error
  where another gets its tensor back, and then don't trust what it holds.
* ``all_well`` gives all that are left the same answer. Each of them has to call it,
  once for each attempt: the others wait.

    workshop check 20_lost_rank

The page is docs/lessons/20_capstone/5_second_task.rst.
"""

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import nn


class Run(Protocol):
    """What knows who is left; ``src/common/quorum.py`` is a real one."""

    def begin(self) -> list[int]: ...
    def add_up(self, tensor: torch.Tensor) -> None: ...
    def all_well(self, well: bool) -> bool: ...


def own_samples(samples: torch.Tensor, members: list[int], rank: int) -> torch.Tensor:
    """This rank's part of a batch, [B, ...] -> [b, ...].

    The members share all B samples in order: the first member gets the first samples,
    the second the next ones, and so on. The sizes of the parts differ by at most 1.
    ``rank`` is one of the members, and there are at least as many samples as members.
    """
    # TODO 1 of 3: members needn't divide B, and ranks needn't be 0, 1, 2, ...
    raise NotImplementedError("TODO 1 of 3")


def attempt(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    run: Run,
    rank: int,
) -> bool:
    """Try one step on a batch; whether all ranks that are left have taken it.

    Args:
        inputs, targets: [B, ...] of the whole batch, the same on all ranks.

    The loss is the sum of squared errors, divided by B. If this returns False, then no
    parameter and no state of the optimizer has changed.
    """
    # TODO 2 of 3: gradients of the own samples, add up each, and then: who decides
    # whether ``optimizer.step()`` is called?
    raise NotImplementedError("TODO 2 of 3")


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[tuple[torch.Tensor, torch.Tensor]],
    run: Run,
    rank: int,
) -> int:
    """One step for each batch, in order; how many attempts failed.

    ``batches`` has pairs of inputs and targets. No batch is skipped, and none is used
    for two steps.
    """
    # TODO 3 of 3
    raise NotImplementedError("TODO 3 of 3")
