"""Read NCCL's log of a job: which node sends over the wrong network?

All ranks of a job write into one log, with ``NCCL_DEBUG=INFO``. Their lines are mixed
with each other, and with what the program prints. A line of NCCL begins with the host,
the process, the thread and the device::

    n3:6260:6291 [1] NCCL INFO Using network IB
    n7:5101:5140 [0] NCCL INFO Using network Socket
    n7:5101:5140 [0] misc/socket.cc:483 NCCL WARN Connect to 10.0.0.3<21724> failed

A warning also names NCCL's source file and line, and a line may begin with the time, as
in ``[2026-11-30 09:26:53] n3:6260:6291 [1]``. ``LINE`` skips these.

On one node an adapter may be missing: all ranks of the node then send over TCP, or only
some of them do. The job continues, but every step waits for this node. If a rank fails,
others warn because of it, so the first warning counts.

Most nodes are as they should be.

    workshop check 19_nccl_log

The page is docs/lessons/19_when_it_breaks/4_nccl.rst.
"""

import re
from collections import Counter

# groups: the host, the process, the thread, the device, INFO or WARN, and the message
LINE = re.compile(
    r"(?:\[[\d :.-]+\] )?([\w.-]+):(\d+):(\d+) \[(\d+)\] "
    r"(?:\S+:\d+ (?:\(\S+\) )?)?NCCL (INFO|WARN) (.*)"
)


def networks(log: list[str]) -> dict[str, tuple[str, ...]]:
    """For each host, the networks that its ranks use, in alphabetical order.

    A host has its networks once, however many ranks use them: ("IB",), or ("IB",
    "Socket") if its ranks differ.
    """
    # TODO 1 of 3: the message is "Using network NAME", where NAME may have two words.
    # What the program prints isn't NCCL's, even if it quotes NCCL in a line of its own.
    raise NotImplementedError("TODO 1 of 3")


def unlike_the_others(found: dict[str, tuple[str, ...]]) -> list[str]:
    """The hosts whose networks aren't those of most hosts, in alphabetical order.

    Ranks may differ on most hosts, too. There's at least one host.
    """
    # TODO 2 of 3: Counter(...).most_common(1) has what most hosts use, and how many.
    raise NotImplementedError("TODO 2 of 3")


def first_warning(log: list[str]) -> tuple[str, str] | None:
    """The host and the message of the first warning of any rank; None without any."""
    # TODO 3 of 3: the lines are in the order of time.
    raise NotImplementedError("TODO 3 of 3")
