"""Write the options of torchrun for node 0 and for node 1.

A job has some nodes, here ``["node-a", "node-b"]``, and each runs four ranks of the
same program. You start one torchrun on every node. Which options make them one run
with eight ranks?

There are two ways. With ``static``, torchrun's default, you number the nodes, and all
ranks connect to a port of the first one. With ``c10d``, the agents agree on the
numbers, and the options are the same on every node.

Return the options of torchrun as a list of words, without the program::

    torchrun  OPTIONS...  train.py

The check reads your options as torchrun does, and then really starts two agents with
them: workshop check 08_torchrun_lines

The page is docs/lessons/08_many_nodes/1_number.rst
"""

from __future__ import annotations


def static_options(
    node_rank: int, hosts: list[str], ranks_per_node: int, port: int
) -> list[str]:
    """The options on node ``node_rank``, whose host is ``hosts[node_rank]``."""
    # TODO 1 of 2: how many nodes there are, which one this is, how many ranks it
    # runs, and where rank 0 will be.
    raise NotImplementedError("TODO 1 of 2")


def c10d_options(
    hosts: list[str], ranks_per_node: int, port: int, job: str
) -> list[str]:
    """The options on every node. ``job`` names the run; no other run has this name."""
    # TODO 2 of 2: how many nodes, how many ranks on each, the c10d rendezvous, where
    # the agents connect, and the name of the run.
    raise NotImplementedError("TODO 2 of 2")
