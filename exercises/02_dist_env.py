"""Read rank, local rank and world size under four launchers.

Every launcher passes its processes their numbers in environment variables, each under
its own names:

=========  ==========================  ==========================  ====================
launcher   rank                        local rank                  world size
=========  ==========================  ==========================  ====================
torchrun   RANK                        LOCAL_RANK                  WORLD_SIZE
mpirun     OMPI_COMM_WORLD_RANK        OMPI_COMM_WORLD_LOCAL_RANK  OMPI_COMM_WORLD_SIZE
srun       SLURM_PROCID                SLURM_LOCALID               SLURM_NTASKS
python     0                           0                           1
=========  ==========================  ==========================  ====================

One launcher can start another, and then the variables of both are set:

* ``srun`` starts one torchrun per node, and torchrun starts the processes. They see the
  ``SLURM_*`` variables of their torchrun beside their own.
* ``mpirun`` runs inside a Slurm job, with the same effect.
* Slurm itself runs a batch script, once, with ``SLURM_PROCID=0`` and the
  ``SLURM_NTASKS`` of the whole job. What the script starts without ``srun`` is a single
  process. Only processes that ``srun`` started have ``SLURM_STEP_ID``.

You recognize torchrun by ``TORCHELASTIC_RUN_ID``, which no other launcher sets.

Check your answer with: workshop check 02_dist_env

The page is docs/lessons/02_ranks/2_launchers.rst
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DistEnv:
    """The place of a process in its world."""

    launcher: str
    rank: int
    local_rank: int
    world_size: int


def find_launcher(environ: Mapping[str, str]) -> str:
    """``"torchrun"``, ``"mpirun"``, ``"srun"`` or ``"python"``."""
    # TODO 1 of 2: which launcher started this process? Ask for the innermost first.
    # Look only at the names that `environ` contains: a value may be empty.
    raise NotImplementedError("TODO 1 of 2")


def get_dist_env(environ: Mapping[str, str]) -> DistEnv:
    """The numbers that the launcher gave to this process, as ``int``."""
    # TODO 2 of 2: ask find_launcher, read the three numbers under the names that this
    # launcher uses, convert them to int, and return a DistEnv. Plain python sets
    # nothing.
    raise NotImplementedError("TODO 2 of 2")
