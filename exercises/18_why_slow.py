"""Find out where a slow step spends its time: work, imbalance or communication.

Every rank has timed itself in two runs of the same program. In the *silent* run,
nothing was sent, so each rank needed only what it needs itself: waiting for data, and
computing. The *real* run communicates. From the medians over its steps, all ranks
together find out where the milliseconds of the real step go::

    data             the smallest data time of any rank: every rank needs that much
    compute          the smallest compute time of any rank, perhaps of another rank
    imbalance        what the slowest rank needs beyond these two
    communication    how much longer the longest real step is than the slowest rank
                     alone; 0 if it's shorter

The slowest rank is the one that needs most for data and computing together. The four
add up to the longest real step, unless it was shorter than the slowest rank alone.

    workshop check 18_why_slow

The page is docs/lessons/18_scaling/3_why_slow.rst.
"""

from dataclasses import dataclass
from statistics import median

import torch
import torch.distributed as dist


@dataclass
class Step:
    """Where the time of a step goes, in milliseconds."""

    data: float
    compute: float
    imbalance: float
    communication: float


def split(data: list[float], compute: list[float], real: list[float]) -> Step:
    """Where a step's time goes. Every rank calls this and returns the same.

    Args:
        data: what this rank waited for in each step of the silent run, milliseconds.
        compute: what it computed for in each step of the silent run.
        real: how long each step took on this rank in the real run.
    """
    # float64, [3]: this rank's medians
    own = torch.tensor([median(data), median(compute), median(real)]).double()
    # TODO 1 of 2: collect the medians of all ranks, and work out the four numbers.
    raise NotImplementedError("TODO 1 of 2")


def largest_loss(step: Step) -> str:
    """The name of what to cure: "data", "imbalance", "communication", or "nothing".

    Computing is no loss. The largest of the other three is to be cured if it takes at
    least 30 % of the step, which is the sum of all four.
    """
    # TODO 2 of 2: which loss is the largest, and is it large enough?
    raise NotImplementedError("TODO 2 of 2")
