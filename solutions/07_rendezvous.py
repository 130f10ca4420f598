"""Let the agents of a run find each other, as torchrun's rendezvous does.

Every node has one agent. All that the agents share is a store, which holds a value for
each key and may serve several runs at once. Every agent calls ``join`` once, with the
same name of the run and the same number of nodes::

    join(store, "job-17", 4, seconds=600)    # on each of four nodes: 0, 1, 2 or 3

An agent doesn't know the others, and no agent has a number yet: the store counts them.
``join`` returns only when all nodes are there. If one is missing, the others give up
after ``seconds``, and say so. You need three methods of the store:

* ``store.add(key, 1)`` adds 1 to a counter, which begins at 0, and returns the new
  value. No two agents get the same. ``store.add(key, 0)`` only reads it.
* ``store.set(key, "text")`` writes a value.
* ``store.wait([key], timedelta(seconds=2))`` blocks until the key has a value. When the
  time is over, it raises a RuntimeError.

    workshop check 07_rendezvous

The page is docs/lessons/07_torchrun/3_rendezvous.rst.
"""

from datetime import timedelta

import torch.distributed as dist


def join(store: dist.Store, run_id: str, nodes: int, seconds: float) -> int:
    """This agent's node rank, from 0, once all agents of the run have called this.

    Raises:
        RuntimeError: the run has all its nodes already; the message names the run.
        TimeoutError: after ``seconds``, agents are missing. The message names the run,
            and how many have joined, as in "job-17: 3 of 4 nodes joined".
    """
    # TODO 1 of 2: get a number that no other agent of this run gets, and refuse any
    # agent beyond the first ``nodes``.
    # [start answer 1]
    node_rank = store.add(f"{run_id}/joined", 1) - 1
    if node_rank >= nodes:
        raise RuntimeError(f"{run_id} has all its {nodes} nodes already")
    # [end answer 1]
    # TODO 2 of 2: the last agent writes that all are there; every agent waits for that,
    # at most ``seconds``.
    # [start answer 2]
    if node_rank == nodes - 1:
        store.set(f"{run_id}/complete", "yes")
    try:
        store.wait([f"{run_id}/complete"], timedelta(seconds=seconds))
    except RuntimeError:
        joined = store.add(f"{run_id}/joined", 0)
        raise TimeoutError(f"{run_id}: {joined} of {nodes} nodes joined") from None
    return node_rank
    # [end answer 2]
