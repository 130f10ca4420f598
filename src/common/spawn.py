"""Starting ranks by ``mp.spawn``: how many, and where they meet.

A launcher answers both questions from outside; a script that starts its own ranks
has to answer them itself, before there is a second process to disagree with.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
from dataclasses import dataclass

from common.distributed import BadInput, count_accelerators, positive_int

# torch reports each rank that it ends because another one failed. The failed rank has
# said why by then, and that one line is what the reader should see.
logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)


def add_spawn_options(parser: argparse.ArgumentParser) -> None:
    """The options that :func:`choose_nprocs` and :func:`choose_port` take."""
    parser.add_argument(
        "--nprocs",
        type=positive_int,
        help="ranks to start (default: one for each accelerator, else 2)",
    )
    parser.add_argument(
        "--master-port",
        metavar="PORT",
        type=positive_int,
        help="port where the ranks meet (default: one that is free now)",
    )


def choose_nprocs(wanted: int | None) -> int:
    """How many ranks to start on this machine.

    Raises:
        BadInput: more than there are accelerators, or the environment shows that a
            launcher has started several processes, each of which would spawn again.
    """
    accelerators = count_accelerators()
    nprocs = wanted or accelerators or 2
    for name in ("WORLD_SIZE", "RANK"):
        text = os.environ.get(name)
        if text is not None and (name == "RANK" or text != str(nprocs)):
            raise BadInput(
                f"{name}={text} is set, but this script starts its {nprocs} ranks "
                f"itself: unset {name} and run it with plain python, without a launcher"
            )
    if accelerators and nprocs > accelerators:
        raise BadInput(
            f"--nprocs {nprocs} is more than the {accelerators} accelerator(s) of this "
            f"machine: use at most {accelerators}, or hide them all "
            "(CUDA_VISIBLE_DEVICES= on NVIDIA) to compute on the CPU"
        )
    return nprocs


def choose_world(args: argparse.Namespace) -> int:
    """How many ranks to start; where they will meet goes into the environment.

    The ranks inherit the environment from this process.
    """
    nprocs = choose_nprocs(args.nprocs)
    os.environ["MASTER_ADDR"] = "127.0.0.1"  # all of them are on this machine
    os.environ["MASTER_PORT"] = str(choose_port(args.master_port))
    share_cores(nprocs)
    return nprocs


def choose_port(wanted: int | None) -> int:
    """The port that rank 0 will listen on: ``wanted``, else one that is free now.

    Raises:
        BadInput: ``wanted`` is no port, or somebody else listens on it.
    """
    if wanted is not None and wanted > 65535:
        raise BadInput(f"--master-port {wanted} is not a port: 1 to 65535")
    with socket.socket() as listener:
        # what rank 0 will do, too: a port that has only just been released is free
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", wanted or 0))
            listener.listen()
        except OSError as error:
            raise BadInput(
                f"--master-port {wanted} cannot be used ({error.strerror}): choose "
                "another, or leave the option out and any free one is taken"
            ) from error
        return listener.getsockname()[1]


def share_cores(nprocs: int) -> None:
    """Let each rank compute on its share of the cores, unless the reader has chosen.

    Without this every rank starts a thread per core, and they hinder each other.
    Must be called before the ranks start: they read it when they import torch.
    """
    if hasattr(os, "sched_getaffinity"):  # a batch job has fewer than the machine
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // nprocs)))


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
    count = _number("NNODES") if "NNODES" in os.environ else 1
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
    rank = _number("NODE_RANK")
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
    address, port = os.environ["MASTER_ADDR"], _number("MASTER_PORT")
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


def _number(name: str) -> int:
    if not os.environ[name].isdecimal():
        text = os.environ[name]
        raise BadInput(f"{name}={text!r} is not a whole number of 0 or more")
    return int(os.environ[name])
