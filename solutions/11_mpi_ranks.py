"""From mpirun's variables to a process group.

``mpirun`` tells each process its numbers, and nothing else. The names of the variables
depend on whose ``mpirun`` it is:

==========  ==========================  =====================
number      Open MPI                    MPICH and Intel MPI
==========  ==========================  =====================
rank        OMPI_COMM_WORLD_RANK        PMI_RANK
local rank  OMPI_COMM_WORLD_LOCAL_RANK  MPI_LOCALRANKID
world size  OMPI_COMM_WORLD_SIZE        PMI_SIZE
==========  ==========================  =====================

A process started by Open MPI may have variables of the right column, too. It inherited
them from the task of ``srun`` that ran ``mpirun``, and they describe that *task*. With
``--mpi=pmi2``, ``srun`` sets ``PMI_RANK`` and ``PMI_SIZE``, but no ``MPI_LOCALRANKID``.
So if one of the three names of a column is missing, no ``mpirun`` of that kind has
started the process.

No ``mpirun`` tells a process where rank 0 listens. The job script passes that on:
``mpirun -x MASTER_ADDR -x MASTER_PORT`` with Open MPI, ``mpiexec -genv MASTER_ADDR n1``
with MPICH. The address may be a name, ``n1``, or a number, ``10.0.0.7``. It may also be
an IPv6 address such as ``fd00::7``. That one is full of colons, so put it in brackets
where a port follows: ``tcp://[fd00::7]:29500``.

Check your answer with: workshop check 11_mpi_ranks

The page is docs/lessons/11_mpi_and_containers/1_mpirun.rst
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPEN_MPI = {
    "rank": "OMPI_COMM_WORLD_RANK",
    "local_rank": "OMPI_COMM_WORLD_LOCAL_RANK",
    "world_size": "OMPI_COMM_WORLD_SIZE",
}
MPICH = {
    "rank": "PMI_RANK",
    "local_rank": "MPI_LOCALRANKID",
    "world_size": "PMI_SIZE",
}


class NotStarted(ValueError):
    """This process lacks something that it needs to join the others."""


def read_ranks(environ: Mapping[str, str]) -> dict[str, int]:
    """``rank``, ``local_rank`` and ``world_size`` of this process.

    Raises:
        NotStarted: no mpirun started this process.
    """
    # TODO 1 of 2: choose the table of the mpirun that started this process, and look
    # up its three names. If neither did, raise NotStarted with "mpirun" in its text.
    # [start answer 1]
    for table in (OPEN_MPI, MPICH):
        if all(name in environ for name in table.values()):
            return {what: int(environ[name]) for what, name in table.items()}
    raise NotStarted("this process was not started by mpirun")
    # [end answer 1]


def group_arguments(environ: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of ``init_process_group``: init_method, rank, world_size.

    Raises:
        NotStarted: MASTER_ADDR or MASTER_PORT is missing.
    """
    # TODO 2 of 2: the three arguments as a dict, with init_method "tcp://HOST:PORT".
    # If one of the two variables is missing, raise NotStarted and name it.
    # [start answer 2]
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if name not in environ:
            raise NotStarted(f"{name} is not set: hand it over, mpirun -x {name} ...")
    host, port = environ["MASTER_ADDR"], environ["MASTER_PORT"]
    if ":" in host:  # IPv6
        host = f"[{host}]"
    own = read_ranks(environ)
    return {
        "init_method": f"tcp://{host}:{port}",
        "rank": own["rank"],
        "world_size": own["world_size"],
    }
    # [end answer 2]
