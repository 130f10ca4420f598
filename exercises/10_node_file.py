"""Read $PBS_NODEFILE: which hosts a job has, how many processes each, which is this.

PBS gives a job no number of hosts and no node rank. It gives one file, with the name of
a host on each line; with ``mpiprocs=2`` each host is there twice::

    gpu-02.cluster
    gpu-02.cluster
    gpu-10.cluster
    gpu-10.cluster

Three things must be right, or the ranks never meet:

1. The order is that of the first lines. The job script runs on the first host, and so
   does rank 0; in the order of the alphabet this may be another host.
2. ``torchrun`` starts as many processes on every host, so a file that names one host
   more often than another is refused, with a ValueError that names both counts.
3. A host is the same with and without its domain: ``hostname`` may say ``gpu-10`` or
   ``gpu-10.cluster``. But ``gpu-1`` is not ``gpu-10``. A host that is not in the file
   is refused with a ValueError that names it.

    workshop check 10_node_file

The page is docs/lessons/10_pbs.rst.
"""

import os
import socket
from pathlib import Path


def hosts_and_processes(text: str) -> tuple[list[str], int]:
    """The hosts in the file's order, as they are written there, and lines per host.

    Lines of one host may stand apart; empty lines say nothing.

    Raises:
        ValueError: there is no host, or some have more lines than others.
    """
    # TODO 1 of 2: count the lines of each host; refuse none, and unequal numbers.
    raise NotImplementedError("TODO 1 of 2")


def node_rank(hosts: list[str], hostname: str) -> int:
    """The place of ``hostname`` among ``hosts``.

    Raises:
        ValueError: it is not one of them.
    """
    # TODO 2 of 2: compare without what follows the first dot.
    raise NotImplementedError("TODO 2 of 2")


def main() -> None:
    """Print the options of torchrun for the host on which this runs."""
    text = Path(os.environ["PBS_NODEFILE"]).read_text()
    hosts, processes = hosts_and_processes(text)
    print(
        f"--nnodes={len(hosts)} --nproc-per-node={processes}"
        f" --node-rank={node_rank(hosts, socket.gethostname())}"
        f" --master-addr={hosts[0]}"
    )


if __name__ == "__main__":
    main()
