"""The lines of torchrun for node 0 and for node 1.

A job has some nodes, here ``["node-a", "node-b"]``, and each is to run four ranks of
the same program. On every node one torchrun is started. What must its options be, so
that all of them become one world of eight ranks?

There are two ways. With ``static``, torchrun's default, somebody else numbers the
nodes, and all ranks meet at a port of the first one. With ``c10d``, the agents agree on
the numbers themselves: the options are the same on every node.

Return the options of torchrun as a list of words, without the program::

    torchrun  OPTIONS...  train.py

The check reads your options as torchrun does, and then really starts two agents with
them: workshop check 08_torchrun_lines

The page is docs/lessons/08_many_nodes.rst
"""

from __future__ import annotations


def static_options(
    node_rank: int, hosts: list[str], ranks_per_node: int, port: int
) -> list[str]:
    """The options on node ``node_rank``, whose host is ``hosts[node_rank]``."""
    # TODO 1 of 2: how many nodes, which of them is this, how many ranks on it, and
    # where rank 0 will be.
    raise NotImplementedError("TODO 1 of 2")


def c10d_options(
    hosts: list[str], ranks_per_node: int, port: int, job: str
) -> list[str]:
    """The options on every node; ``job`` is a name that no other run has."""
    # TODO 2 of 2: how many nodes, how many ranks on each, that the agents agree by
    # c10d, where they meet, and under which name.
    raise NotImplementedError("TODO 2 of 2")
