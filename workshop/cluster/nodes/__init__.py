"""A real multi-node Slurm on one Linux machine, up in about a second, without root.

Every node is a process tree in namespaces of its own: network, processes, mounts,
hostname, shared memory. It has its own address, hostname, ports and ``slurmd``; a
bridge joins the nodes. All of it lives inside one outer set of namespaces, so that
the end of one process removes every trace: daemons, jobs, mounts, interfaces.

    with Cluster() as cluster:
        cluster.up(nodes=2, cpus=4)
        print(cluster.run(["srun", "--nodes=2", "hostname"]).stdout)

On the command line: ``workshop cluster --help``. Only Python's standard library is
needed here, and Linux with the packages that ``missing()`` names.
"""

from typing import TYPE_CHECKING

from workshop.cluster.nodes.errors import ClusterError

if TYPE_CHECKING:
    from workshop.cluster.nodes.cluster import Cluster
    from workshop.cluster.nodes.machine import missing

__all__ = ["Cluster", "ClusterError", "missing"]


def __getattr__(name: str) -> object:
    """Import the rest when it is used: `workshop` must answer at once."""
    if name == "Cluster":
        from workshop.cluster.nodes.cluster import Cluster

        return Cluster
    if name == "missing":
        from workshop.cluster.nodes.machine import missing

        return missing
    raise AttributeError(f"module 'workshop.cluster.nodes' has no attribute {name!r}")
