"""Find the slow rank of a running job, from how long the other ranks wait.

In each step a rank loads a batch, computes, and calls an all-reduce, in which it waits
until the last rank has arrived. The slow rank always arrives last, so it waits *least*
of all. On one rank alone you can't see that: time the three parts of each step on every
rank, tell all ranks the times, and compare them. Every rank must find the same rank.

Steps differ for reasons that don't matter: the first one includes what happens only
once, and in some step any rank may be late by chance. So leave out the first step, and
take the *median* of the others. That is what "typical" means below.

The check runs your code in ranks, and chooses which rank is slow, and why. The
functions of ``time`` show simulated time, so a busy machine changes nothing.

    workshop check 19_straggler

The page is docs/lessons/19_when_it_breaks/3_ask_pytorch.rst.
"""

import time
from collections.abc import Callable
from statistics import median

import torch
import torch.distributed as dist

Step = dict[str, float]  # seconds of "data", "compute" and "waiting"


def time_step(
    load: Callable[[], object],
    compute: Callable[[object], None],
    gradients: torch.Tensor,
) -> Step:
    """Do one step, and return the seconds of its parts on this rank.

    "data" is ``load()``, which returns a batch, "compute" is ``compute(batch)``, and
    "waiting" is the all-reduce, which sums ``gradients`` over all ranks, in place.
    """
    # TODO 1 of 3: read the clock between the parts: time.perf_counter().
    # [start answer 1]
    start = time.perf_counter()
    batch = load()
    loaded = time.perf_counter()
    compute(batch)
    computed = time.perf_counter()
    # every rank: [numel] -> [numel]
    dist.all_reduce(gradients)
    waiting = time.perf_counter() - computed
    return {"data": loaded - start, "compute": computed - loaded, "waiting": waiting}
    # [end answer 1]


def typical_of_ranks(steps: list[Step]) -> list[Step]:
    """The typical seconds of each rank, rank 0 first; every rank returns all of them.

    ``steps`` are those of this rank. Typical is the median without the first step.
    """
    # TODO 2 of 3: `median` is imported. Each rank has only its own steps.
    # [start answer 2]
    parts = ("data", "compute", "waiting")
    own = {part: median(step[part] for step in steps[1:]) for part in parts}
    ranks = [own for _ in range(dist.get_world_size())]
    # every rank: its own times, then those of all ranks
    dist.all_gather_object(ranks, own)
    return ranks
    # [end answer 2]


def slow_rank(ranks: list[Step]) -> int | None:
    """The rank that typically waits least; None if no rank holds up the others.

    It holds them up if the median of the other ranks' waiting is more than its own
    plus a tenth of its own step, all three parts together. ``ranks`` has at least two.
    """
    # TODO 3 of 3: find the rank that waits least, then ask whether it's slow.
    # [start answer 3]
    waiting = [each["waiting"] for each in ranks]
    slow = waiting.index(min(waiting))
    others = median(waiting[:slow] + waiting[slow + 1 :])
    step = sum(ranks[slow].values())
    return slow if others > waiting[slow] + step / 10 else None
    # [end answer 3]


def reason(ranks: list[Step], slow: int) -> str:
    """ "data" or "compute": of which the slow rank has more than the others."""
    more = {}
    for part in ("data", "compute"):
        others = [each[part] for rank, each in enumerate(ranks) if rank != slow]
        more[part] = ranks[slow][part] - median(others)
    return max(more, key=more.__getitem__)


def find_straggler(
    load: Callable[[], object],
    compute: Callable[[object], None],
    gradients: torch.Tensor,
    steps: int,
) -> tuple[int, str] | None:
    """The slow rank and what makes it slow, measured over ``steps`` steps; or None."""
    ranks = typical_of_ranks(
        [time_step(load, compute, gradients) for _ in range(steps)]
    )
    slow = slow_rank(ranks)
    if slow is None:
        return None
    return slow, reason(ranks, slow)
