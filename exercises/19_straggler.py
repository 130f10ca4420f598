"""Find the slow rank from the others' waiting, and say what makes it slow.

In each step a rank loads a batch, computes, and waits in the all-reduce until the last
rank has arrived. The slow rank always arrives last, so it waits *least* of all.
You get the seconds that each rank spent in each step::

    times[rank][step] == {"data": 0.01, "compute": 0.21, "waiting": 0.35}

Steps differ for reasons that don't matter: the first one includes what happens only
once, and in some step any rank may be late by chance. So leave out the first step, and
take the *median* of the others. That is what "typical" means below.

    workshop check 19_straggler

The page is docs/lessons/19_when_it_breaks/3_ask_pytorch.rst.
"""

from statistics import median

Step = dict[str, float]  # seconds of "data", "compute" and "waiting"


def typical(steps: list[Step], part: str) -> float:
    """The median seconds of one part of a rank's steps, without the first step."""
    # TODO 1 of 3: `median` is imported.
    raise NotImplementedError("TODO 1 of 3")


def slow_rank(times: list[list[Step]]) -> int | None:
    """The rank that typically waits least; None if no rank holds up the others.

    It holds them up if the median of the other ranks' typical waiting is more than its
    own plus a tenth of its own typical step, all three parts together.
    """
    # TODO 2 of 3: find the rank that waits least, then ask whether it's slow.
    raise NotImplementedError("TODO 2 of 3")


def reason(times: list[list[Step]], slow: int) -> str:
    """ "data" or "compute": of which the slow rank typically has more than the others.

    Compare each part with the median of the other ranks' typical one, and return the
    part with the larger difference in seconds.
    """
    # TODO 3 of 3: subtract, and compare the two differences.
    raise NotImplementedError("TODO 3 of 3")
