"""Read $PBS_NODEFILE: the hosts of a job, processes on each, and the node rank.

PBS tells a job neither the number of its hosts nor a node rank. It provides a file with
a host name on each line. With ``mpiprocs=2``, the file lists each host twice::

    gpu-02.cluster
    gpu-02.cluster
    gpu-10.cluster
    gpu-10.cluster

Get three things right, or the ranks never connect:

1. Keep the hosts in the order in which they first appear. The job script runs on the
   first host, and so does rank 0. In alphabetical order, that may be another host.
2. ``torchrun`` starts the same number of processes on every host. Refuse a file that
   lists one host more often than another, with a ValueError that names both counts.
3. Ignore the domain when you compare host names: ``hostname`` may print ``gpu-10``,
   ``gpu-10.cluster`` or ``gpu-10.localdomain``. But ``gpu-1`` is not ``gpu-10``. Refuse
   a host that isn't in the file, with a ValueError that names it.

    workshop check 10_node_file

The page is docs/lessons/10_pbs/1_ten_lines.rst.
"""

import os
import socket
from pathlib import Path


def hosts_and_processes(text: str) -> tuple[list[str], int]:
    """The hosts in the file's order, spelled as in the file, and the lines per host.

    The lines of a host need not follow each other. Ignore empty lines.

    Raises:
        ValueError: there is no host, or some have more lines than others.
    """
    # TODO 1 of 2: count each host's lines; refuse an empty file and unequal counts.
    # [start answer 1]
    counts: dict[str, int] = {}
    for host in text.split():
        counts[host] = counts.get(host, 0) + 1
    if not counts:
        raise ValueError("the node file names no host")
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{host}: {count}" for host, count in counts.items())
        raise ValueError(f"torchrun needs as many processes on each host: {listed}")
    hosts = list(counts)
    return hosts, counts[hosts[0]]
    # [end answer 1]


def node_rank(hosts: list[str], hostname: str) -> int:
    """The index of ``hostname`` in ``hosts``; leaves the list unchanged.

    Raises:
        ValueError: it isn't one of them.
    """
    # TODO 2 of 2: compare only the part before the first dot.
    # [start answer 2]
    names = [host.split(".")[0] for host in hosts]
    name = hostname.split(".")[0]
    if name not in names:
        raise ValueError(f"{hostname} is not a host of this job: {', '.join(hosts)}")
    return names.index(name)
    # [end answer 2]


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
