"""Agree on who takes the next step, and never wait for a rank that is dead.

Four ranks train. Any of them may die at any moment, and you can't ask rank 0, since it
may be the one. What outlives them is a store, which another process serves::

    store.set(key, text)                  write
    store.check([key])                    whether it's there
    store.get(key)                        read, as bytes; waits if it isn't there
    store.add(key, 1)                     add 1 to a counter, return the new value
    store.compare_set(key, "", text)      write if it isn't there; return what's stored

``compare_set`` is one operation: if two ranks call it, the first one writes, and both
get what that one wrote. ``alive()`` takes another look at the beats, and returns the
ranks that beat, as an ascending list that includes yours. Two ranks may see different
lists for a while. A rank in it may still be computing, or may be dead already: a dead
one disappears from the list after some looks.

Before a step, every living rank calls ``agree``. After its all-reduce, every member of
the quorum calls ``commit``. Both must return the same on all ranks that call them. They
talk through the store alone: there's no process group that you could ask. While they
wait, they must keep calling ``alive()``, because a rank may die meanwhile.

    workshop check 23_quorum

The page is docs/lessons/23_loose_coupling/3_lost_rank.rst.
"""

import json
from collections.abc import Callable

import torch.distributed as dist


def agree(
    store: dist.Store, step: int, rank: int, alive: Callable[[], list[int]]
) -> list[int]:
    """The ranks that take this step, in ascending order; one decision for all.

    It is decided when each rank of ``alive()`` has arrived, so a slow rank is waited
    for and a dead one isn't. A rank that calls this later gets the same list, even if
    it isn't in there. Use keys that begin with ``f"{step}/"``.
    """
    # TODO 1 of 2: arrive; until it's decided, look, and propose the living once all
    # of them have arrived. `json.dumps` makes text of a list, `json.loads` a list.
    # [start answer 1]
    store.set(f"{step}/here/{rank}", "yes")
    decision = f"{step}/quorum"
    while not store.check([decision]):
        living = alive()
        if all(store.check([f"{step}/here/{other}"]) for other in living):
            store.compare_set(decision, "", json.dumps(living))
    return json.loads(store.get(decision))
    # [end answer 1]


def commit(
    store: dist.Store,
    step: int,
    rank: int,
    members: list[int],
    has_sum: bool,
    alive: Callable[[], list[int]],
) -> bool:
    """Whether the step has happened; the same on all members that call this.

    It has if every member has the sum (``has_sum``). If one of them hasn't, or has
    died before it could say so, it hasn't, and all of them will repeat it. If a member
    dies after it said so, and before this is decided, either will do.
    """
    # TODO 2 of 2: say whether this rank has the sum; until it's decided, look whether
    # a member is missing. What if one rank decides "done", and another "failed"?
    # [start answer 2]
    outcome = f"{step}/outcome"
    if not has_sum:
        store.compare_set(outcome, "", "failed")
    elif store.add(f"{step}/sums", 1) == len(members):
        store.compare_set(outcome, "", "done")
    while not store.check([outcome]):
        if not set(members) <= set(alive()):
            store.compare_set(outcome, "", "failed")
    return store.get(outcome) == b"done"
    # [end answer 2]
