"""Join, all-reduce, leave: a whole distributed program in one function.

Each process of a run calls ``sum_over_ranks`` once. The function does what every
program from here on does:

1. *Join* the process group with the gloo backend, at the address ``init_method``. That
   is a file, ``file:///shared/meet``, or a port, ``tcp://n1:29500``. ``environ`` holds
   the rank under ``RANK`` and the world size under ``WORLD_SIZE``, both as text. Take
   both from ``environ``: ``os.environ`` may still hold those of another launcher, and
   must stay as it is. A run of one process joins, too.
2. *All-reduce*: as a member of the group, call ``measure()`` once. It returns this
   rank's number. Add up the numbers of all ranks in float64. Every rank returns the
   sum as a ``float``.
3. *Leave* with ``dist.destroy_process_group()``, so that the process can join another
   group later. If ``measure`` raises an exception, leave, too, without waiting for
   other ranks, which may still be measuring, and let that exception reach the caller.

Check your answer with: workshop check 02_join_and_leave

The page is docs/lessons/02_ranks/3_rendezvous.rst
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist


def sum_over_ranks(
    measure: Callable[[], float], init_method: str, environ: Mapping[str, str]
) -> float:
    """The sum of what ``measure()`` returns on all ranks; the same on every rank.

    Afterwards this process is in no group, whether the function returns or raises.
    """
    # TODO 1 of 1: join, all-reduce, and leave in a `finally`.
    raise NotImplementedError("TODO 1 of 1")
