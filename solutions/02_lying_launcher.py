"""Find out that the environment lies, and say which variables do.

A job script exports ``RANK=0`` for a test and it is still there when ``srun`` starts
eight processes: ``SLURM_PROCID`` counts 0 to 7, but ``RANK`` is 0 everywhere. Eight
processes that all take themselves for rank 0 never meet.
Whoever reads the environment should notice first and name the liar.

Two more things to know:

* Under torchrun (``TORCHELASTIC_RUN_ID`` is set) nothing has to agree: the ``SLURM_*``
  or ``OMPI_*`` variables there describe the torchrun itself, one per node.
* Under mpirun inside a Slurm job, the ``SLURM_*`` variables describe the daemon that
  mpirun started on the node; only those of mpirun have to agree.

Check your answer with: workshop check 02_lying_launcher

The page is docs/lessons/02_ranks.rst
"""

from __future__ import annotations

from collections.abc import Mapping


class LyingLauncher(Exception):
    """Two variables contradict each other; the message names all that do."""


# Each pair says the same thing, if both are set.
SRUN = [
    ("RANK", "SLURM_PROCID"),
    ("LOCAL_RANK", "SLURM_LOCALID"),
    ("WORLD_SIZE", "SLURM_NTASKS"),
]
MPIRUN = [
    ("RANK", "OMPI_COMM_WORLD_RANK"),
    ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"),
]


def contradictions(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The pairs of variables with different numbers, in the order of the tables."""
    # TODO 1 of 3: choose the table for the launcher (none for torchrun), then compare
    # the pairs that are both set. Compare numbers: "03" and "3" are the same.
    # [start answer 1]
    if "TORCHELASTIC_RUN_ID" in environ:
        return []
    pairs = MPIRUN if "OMPI_COMM_WORLD_RANK" in environ else SRUN
    return [
        (left, right)
        for left, right in pairs
        if left in environ
        and right in environ
        and int(environ[left]) != int(environ[right])
    ]
    # [end answer 1]


def refuse_lies(environ: Mapping[str, str]) -> None:
    """Do nothing if all agree.

    Raises:
        LyingLauncher: some do not. The message has ``NAME=VALUE`` for every variable
            of every contradicting pair, as in ``RANK=0 contradicts SLURM_PROCID=3``.
    """
    # TODO 2 of 3: raise LyingLauncher with one message for all contradictions.
    # [start answer 2]
    found = [
        f"{left}={environ[left]} contradicts {right}={environ[right]}"
        for left, right in contradictions(environ)
    ]
    if found:
        raise LyingLauncher("; ".join(found))
    # [end answer 2]


def master_is_reachable(environ: Mapping[str, str]) -> bool:
    """Whether processes on all nodes can mean the same machine by ``MASTER_ADDR``.

    Only for processes that srun started. ``SLURM_NNODES`` is the number of nodes.
    """
    # TODO 3 of 3: localhost and 127.0.0.1 are a different machine on every node, so
    # they will do only if there is just one node.
    # [start answer 3]
    here = environ["MASTER_ADDR"] in ("localhost", "127.0.0.1")
    one_node = int(environ["SLURM_NNODES"]) == 1
    return one_node or not here
    # [end answer 3]
