"""Read five kinds of failed runs: which rank failed first, and why.

Each line that torch prints about an exception begins with the rank. The lines of
several ranks are mixed, but those of one rank are in order::

    [rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB
    [rank0]: RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.2]:10141

At the end torchrun lists all processes that failed. It calls the one whose exit it
noticed first the root cause, so don't rely on that. Use these rules:

1. An error with one of CONSEQUENCES only says that a partner left or is late. The first
   line of the log with any other error names the rank. If its message has a key of
   CAUSES, the cause is that key's value. Otherwise the cause is "program".
2. No such line: a process that torchrun lists with a negative exit code was killed by a
   signal, and couldn't print anything. Its cause is "killed". But -15 is SIGTERM,
   with which torchrun ends the other processes: that is a consequence, too.
3. Neither: all ranks with an error waited for the one without. Its cause is "absent".

    workshop check 19_five_logs

The page is docs/lessons/19_when_it_breaks/2_which_rank.rst.
"""

import re

CONSEQUENCES = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Timed out waiting",
)
CAUSES = {"CUDA out of memory": "gpu memory", "No space left on device": "disk full"}
# finds (rank, message), and in torchrun's list (rank, exit code); all are strings
ERROR = re.compile(r"^\[rank(\d+)\]: (?:\w+\.)*\w*Error: (.*)$", re.MULTILINE)
CODE = re.compile(r"rank +: (\d+) \(local_rank: \d+\)\n *exitcode +: (-?\d+)")


def own_errors(log: str) -> list[tuple[int, str]]:
    """(rank, message) of the errors that aren't consequences, in the log's order."""
    # TODO 1 of 2: use ERROR and CONSEQUENCES.
    raise NotImplementedError("TODO 1 of 2")


def first_failure(log: str, ranks: int) -> tuple[int, str]:
    """(the rank that failed first, its cause) of a failed run of ``ranks`` ranks."""
    # TODO 2 of 2: apply the three rules.
    raise NotImplementedError("TODO 2 of 2")
