"""Choose how to cut sequences over ranks: Ulysses, a ring, or gathered keys.

The rules, for one sequence of T tokens, cut over c ranks. H is the width, a the number
of heads, and every number takes 2 bytes. S is the size of one rank's keys in one block:
2 H T / c bytes.

* Each rank holds two chunks: 2 c divides T. With Ulysses, c also divides a.
* For each block, forward and backward together, a rank sends (6 c - 4) S bytes with a
  ring, 4 (c - 1) S with gathered keys and values, 8 (c - 1) / c S with Ulysses. One
  rank sends nothing.
* For each block, a rank keeps the input: H numbers for each of its own tokens. The rest
  is computed again, one block at a time. That block takes another 17 H + a + 4 numbers
  for each own token. With gathered keys and values, it takes another 14 H + a + 4 for
  each own token, and 2 H for each of all T tokens.
* A rank waits for all bytes that it sends, with one exception. A ring's messages are
  hidden if T / c is at least the device's operations per second, divided by the link's
  bytes per second. Then it waits for none of them. (That's the rule without a mask.
  With a causal one it would be twice as many.)

    workshop check 21_choose_context

The page is docs/lessons/21_long_sequences/4_choose.rst.
"""

from typing import NamedTuple

METHODS = ("ulysses", "ring", "gather")


class Job(NamedTuple):
    """A model, one sequence, and what a rank has."""

    tokens: int  # T
    width: int  # H
    heads: int  # a
    blocks: int
    most_ranks: int  # that you can get
    memory: int  # bytes for the inputs of all blocks, and one block
    flops: int  # operations per second
    rate: int  # bytes per second of the link


class Choice(NamedTuple):
    """One of METHODS, and on how many ranks."""

    method: str
    ranks: int


MANY_HEADS = Job(131_072, 4096, 32, 32, 64, 10**10, 10**15, 50 * 10**9)
LONG_SEQUENCE = Job(1_048_576, 4096, 32, 32, 64, 12 * 10**9, 4 * 10**14, 50 * 10**9)
FEW_HEADS = Job(65_536, 2048, 3, 24, 64, 4 * 10**9, 10**15, 25 * 10**9)


def sent_bytes(job: Job, method: str, ranks: int) -> int:
    """What a rank sends for one block, forward and backward together."""
    # TODO 1 of 3
    # [start answer 1]
    keys = 2 * job.width * job.tokens // ranks
    if ranks == 1:
        return 0
    if method == "ring":
        return (6 * ranks - 4) * keys
    if method == "gather":
        return 4 * (ranks - 1) * keys
    return 8 * (ranks - 1) * keys // ranks
    # [end answer 1]


def kept_bytes(job: Job, method: str, ranks: int) -> int:
    """The inputs of all blocks, and one block, on one rank."""
    # TODO 2 of 3
    # [start answer 2]
    own = job.tokens // ranks
    inputs = job.blocks * job.width * own
    if method == "gather":
        one = (14 * job.width + job.heads + 4) * own + 2 * job.width * job.tokens
    else:
        one = (17 * job.width + job.heads + 4) * own
    return 2 * (inputs + one)
    # [end answer 2]


def choose(job: Job) -> Choice | None:
    """The fewest ranks on which a method is allowed and fits; there, the best one.

    The best one waits for the fewest bytes. On a tie, it's the first in METHODS.
    None if no method fits on any number of ranks up to ``most_ranks``.
    """
    # TODO 3 of 3
    # [start answer 3]
    for ranks in range(1, job.most_ranks + 1):
        waits = {}
        for method in METHODS:
            allowed = job.tokens % (2 * ranks) == 0
            if method == "ulysses" and job.heads % ranks:
                allowed = False
            if allowed and kept_bytes(job, method, ranks) <= job.memory:
                hidden = job.tokens * job.rate >= job.flops * ranks
                waiting = method != "ring" or not hidden
                waits[method] = sent_bytes(job, method, ranks) if waiting else 0
        if waits:
            return Choice(min(waits, key=waits.get), ranks)
    return None
    # [end answer 3]
