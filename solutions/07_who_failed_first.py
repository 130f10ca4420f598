"""Read the error files of a failed run, and say which rank failed first.

torchrun gives every process the name of a file for its last words. A program whose
main function is decorated with ``@record`` writes an exception there::

    logs/node0/attempt_0/2/error.json       2 is the local rank
    {"message": {"message": "ValueError: 63 pixels",
                 "extraInfo": {"py_callstack": "...", "timestamp": "1795241785"}}}

When one rank fails, the others soon fail, too, because they had been talking to it: of
four files, three hold a *consequence*. And the clock of these files counts whole
seconds. So the earliest timestamp alone does not tell. Judge like this:

1. Of each node, the newest attempt counts: ``attempt_10`` is newer than ``attempt_9``.
2. A rank whose message contains one of CONSEQUENCES only lost its partner. Of the other
   failures the earliest are the suspects; in the same second there may be several.
3. If there are only consequences, somebody was killed, and who is killed writes no
   file: the suspects are the ranks without a readable one (it may be missing, empty, or
   cut off by the kill).
4. If no rank left anything, nobody is a suspect.

    workshop check 07_who_failed_first

The page is docs/lessons/07_torchrun.rst.
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
    """The last words of a rank: its global rank, the second, the message."""

    rank: int
    second: int
    message: str

    @property
    def is_consequence(self) -> bool:
        return any(words in self.message for words in CONSEQUENCES)


def read_failure(path: Path, rank: int) -> Failure | None:
    """What the error file at ``path`` says; None if it says nothing."""
    # TODO 1 of 2: the message and the timestamp; None if there is no readable file.
    # [start answer 1]
    try:
        said = json.loads(path.read_text())["message"]
        second = int(said["extraInfo"]["timestamp"])
        return Failure(rank, second, said["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # [end answer 1]


def suspects(nodes: list[Path], nproc_per_node: int) -> list[int]:
    """The global ranks that may have failed first, in order.

    ``nodes`` are the log folders of the nodes, in the order of their node ranks; each
    holds the folders ``attempt_N``. Every node runs ``nproc_per_node`` ranks.
    """
    # TODO 2 of 2: the file of every rank in the newest attempt, then rules 2 to 4.
    # [start answer 2]
    failures, silent = [], []
    for node_rank, node in enumerate(nodes):
        attempts = [path for path in node.iterdir() if path.name.startswith("attempt_")]
        newest = max(attempts, key=lambda path: int(path.name.split("_")[1]))
        for local_rank in range(nproc_per_node):
            rank = node_rank * nproc_per_node + local_rank
            failure = read_failure(newest / str(local_rank) / "error.json", rank)
            (silent if failure is None else failures).append(failure or rank)
    causes = [failure for failure in failures if not failure.is_consequence]
    if not causes:
        return silent if failures else []
    first = min(failure.second for failure in causes)
    return [failure.rank for failure in causes if failure.second == first]
    # [end answer 2]
