"""Which node is this, among how many? Said by the environment, and by nothing else.

    from nodes import choose_node
    node = choose_node(args)  # Node(rank=1, count=2, nprocs=4)

Nobody numbers the nodes for a program that is started by hand: whoever starts it
says NODE_RANK, another one on each node, and the same NNODES, MASTER_ADDR and
MASTER_PORT on all.
"""

from __future__ import annotations

import argparse
import os
import socket
from dataclasses import dataclass

from command_line import BadInput
from dist_env import read_number
from spawning import choose_nprocs, choose_port, choose_world, share_cores

NEEDED = ("NODE_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Node:
    """The place of this node among all."""

    rank: int  # 0 .. count - 1
    count: int
    nprocs: int  # ranks on this node, and on each of the others


def choose_node(args: argparse.Namespace) -> Node:
    """This node, from NNODES and NODE_RANK; without NNODES it is the only one.

    Raises:
        BadInput: a variable is missing or impossible, the name of the first node is
            not known here, or this is the first node and the port is taken.
    """
    count = read_number(os.environ, "NNODES") if "NNODES" in os.environ else 1
    if count < 2:
        if os.environ.get("NODE_RANK", "0") != "0" or count < 1:
            raise BadInput(
                f"NNODES={os.environ.get('NNODES', '')!r} with "
                f"NODE_RANK={os.environ.get('NODE_RANK', '')!r}: set NNODES to the "
                "number of nodes and NODE_RANK to 0, 1 ... on each"
            )
        return Node(0, 1, choose_world(args))
    if missing := [name for name in NEEDED if not os.environ.get(name)]:
        raise BadInput(
            f"{', '.join(missing)} not set: with NNODES={count}, each node needs its "
            "NODE_RANK and the MASTER_ADDR and MASTER_PORT of the first"
        )
    rank = read_number(os.environ, "NODE_RANK")
    if rank >= count:
        raise BadInput(
            f"NODE_RANK={rank} must be smaller than NNODES={count}: nodes are numbered "
            f"0 to {count - 1}"
        )
    _check_master(rank)
    nprocs = choose_nprocs(args.nprocs)
    share_cores(nprocs)
    return Node(rank, count, nprocs)


def _check_master(rank: int) -> None:
    """Find now what the ranks would find, one by one, after a long wait."""
    address, port = os.environ["MASTER_ADDR"], read_number(os.environ, "MASTER_PORT")
    if not 1 <= port <= 65535:
        raise BadInput(f"MASTER_PORT={port} is not a port: 1 to 65535")
    try:
        socket.getaddrinfo(address, port)
    except OSError as error:
        raise BadInput(
            f"MASTER_ADDR={address!r} is no host that {socket.gethostname()} knows "
            f"({error.strerror}): give the name or the address of the first node"
        ) from error
    if rank == 0:
        try:
            choose_port(port)
        except BadInput as error:
            raise BadInput(
                f"MASTER_PORT={port} is taken on this node: choose another, and the "
                "same on all nodes"
            ) from error
