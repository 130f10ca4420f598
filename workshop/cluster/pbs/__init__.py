"""A rehearsal of OpenPBS on the nodes of the practice cluster.

It is not OpenPBS. It is a stand-in for tests and for practice that behaves as OpenPBS
23.06 was seen to behave where that matters to a job script: how directives are read,
which host gets what, in which environment and folder things start, what signals and
exit statuses do, where output goes, and how jobs depend on each other. Scheduling is
first come, first served; there is one queue, ``workq``.

    with Cluster() as cluster:
        cluster.up(nodes=3)
        with Rehearsal(cluster) as pbs:
            job = pbs.qsub("job_scripts/multinode_torchrun.pbs")
            print(pbs.wait(job).output)

As a user, on the login host of a practice cluster that is up:

    python -m workshop.cluster.pbs bash
"""

from .jobs import Delays, Job
from .server import PbsError, Rehearsal

__all__ = ["Delays", "Job", "PbsError", "Rehearsal"]
