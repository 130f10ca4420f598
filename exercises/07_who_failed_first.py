"""Read the error files of a failed run, and say which rank failed first.

torchrun gives every process the name of an error file. A program whose main function is
decorated with ``@record`` writes its exception there::

    logs/node0/attempt_0/2/error.json       2 is the local rank
    {"message": {"message": "ValueError: 63 pixels",
                 "extraInfo": {"py_callstack": "...", "timestamp": "1795241785"}}}

When one rank fails, the ranks that communicate with it soon fail too. Of four files,
three then hold a *consequence*. The timestamps are whole seconds, so the earliest one
alone doesn't settle it. Use these rules:

1. On each node, the newest attempt counts: ``attempt_10`` is newer than ``attempt_9``.
2. A rank whose message contains one of CONSEQUENCES only lost its partner. Of the other
   failures, the earliest are the suspects. There may be several in the same second.
3. If there are only consequences, a rank was killed, and a killed rank writes no file.
   The suspects are the ranks without a readable file (it may be missing, empty, or cut
   off by the kill).
4. If no rank left anything, there is no suspect.

    workshop check 07_who_failed_first

The page is docs/lessons/07_torchrun/4_first_failure.rst.
"""

import json
from dataclasses import dataclass
from pathlib import Path

CONSEQUENCES = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "Timed out waiting",
)


@dataclass
class Failure:
    """One error file: the global rank, the second, the message."""

    rank: int
    second: int
    message: str

    @property
    def is_consequence(self) -> bool:
        return any(words in self.message for words in CONSEQUENCES)


def read_failure(path: Path, rank: int) -> Failure | None:
    """The content of the error file at ``path``; None if there is no readable one."""
    # TODO 1 of 2: return the message and the timestamp, or None.
    raise NotImplementedError("TODO 1 of 2")


def suspects(nodes: list[Path], nproc_per_node: int) -> list[int]:
    """The global ranks that may have failed first, in order.

    ``nodes`` are the log folders of the nodes, in the order of their node ranks; each
    holds the folders ``attempt_N``, or none if nothing started there. Every node runs
    ``nproc_per_node`` ranks.
    """
    # TODO 2 of 2: read every rank's file of the newest attempt; apply rules 2 to 4.
    raise NotImplementedError("TODO 2 of 2")
