"""From (node, local rank) to the rank, and back.

Two nodes with four processes each have the ranks 0 to 3 and 4 to 7. A process that
knows its place on its node can work out its rank, and the other way around. Nodes
needn't have equally many processes: ``processes_per_node`` lists them, ``[4, 4]`` here.

The third function is for launchers that don't set the node rank, such as mpirun. There
the processes send each other their host names. Ranks needn't be in blocks: with
``srun --distribution=cyclic`` neighboring ranks are on different nodes. No function
may change the list that it is given.

Check your answer with: workshop check 02_rank_arithmetic

The page is docs/lessons/02_ranks/1_say_hello.rst
"""

from __future__ import annotations

import torch.distributed as dist


def global_rank(node_rank: int, local_rank: int, processes_per_node: list[int]) -> int:
    """The rank of process ``local_rank`` on node ``node_rank``.

    Ranks are numbered node by node.
    """
    # TODO 1 of 3: how many processes are counted before this one? Those on all
    # earlier nodes, and those before it on its own node.
    # [start answer 1]
    before = 0
    for count in processes_per_node[:node_rank]:
        before += count
    return before + local_rank
    # [end answer 1]


def place(rank: int, processes_per_node: list[int]) -> tuple[int, int]:
    """``(node_rank, local_rank)`` of a rank: the inverse of :func:`global_rank`."""
    # TODO 2 of 3: go through the nodes until you reach the one that has this rank.
    # [start answer 2]
    local_rank = rank
    for node_rank, count in enumerate(processes_per_node):
        if local_rank < count:
            return node_rank, local_rank
        local_rank -= count
    raise ValueError(f"rank {rank} of {sum(processes_per_node)} processes")
    # [end answer 2]


def place_by_host(rank: int, hosts: list[str]) -> tuple[int, int]:
    """``(node_rank, local_rank)`` of a rank, where ``hosts[r]`` is the host of rank r.

    Number the hosts in the order in which they first appear in ``hosts``, and the
    ranks of one host in the order of their ranks.
    """
    # TODO 3 of 3: count the different hosts that appear before the first process of
    # this host, and the processes on this host with a smaller rank.
    # [start answer 3]
    in_order = list(dict.fromkeys(hosts))
    node_rank = in_order.index(hosts[rank])
    local_rank = hosts[:rank].count(hosts[rank])
    return node_rank, local_rank
    # [end answer 3]


def ask_everybody(host: str) -> tuple[int, int]:
    """My ``(node_rank, local_rank)``, although the launcher did not tell me."""
    hosts: list[str] = [""] * dist.get_world_size()
    # every rank; afterwards each has the hosts of all, in the order of the ranks
    dist.all_gather_object(hosts, host)
    return place_by_host(dist.get_rank(), hosts)
