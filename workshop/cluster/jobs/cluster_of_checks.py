"""The practice cluster that the grader keeps for checks of job scripts.

It comes up with the first such check of a session, in less than two seconds, and
lives as long as the engine. Between checks all jobs are cancelled. It is not the
cluster of ``workshop cluster up``: that one is the learner's.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from workshop.cluster.nodes import Cluster, ClusterError, missing

NODES, CPUS, GPUS = 4, 8, 4
NO_CLUSTER = "WORKSHOP_NO_CLUSTER"  # only read job scripts through


class ClusterOfChecks:
    """Owns the cluster, or knows why there is none.

    Args:
        hidden: folders that jobs must not see; None if they see all of this machine.
    """

    def __init__(self, hidden: Sequence[str] | None):
        self._cluster: Cluster | None = None
        self._why_dry = "; ".join(missing())
        if os.environ.get(NO_CLUSTER):
            self._why_dry = f"{NO_CLUSTER} is set"
        if self._why_dry:
            return
        self._state = Path(tempfile.mkdtemp(prefix="wsc-"))  # short: it holds sockets
        cluster = Cluster(self._state)
        try:
            size = {"nodes": NODES, "cpus": CPUS, "gpus": GPUS}
            cluster.up(**size, stay=False, hidden=hidden)
        except ClusterError as error:
            self._why_dry = str(error)
            shutil.rmtree(self._state, ignore_errors=True)
        else:
            self._cluster = cluster

    def description(self, root: Path) -> dict[str, str]:
        """The arguments of ``Scheduler``, as plain data."""
        state = str(self._state) if self._cluster else ""
        return {
            "root": str(root),
            "python": sys.executable,
            "state": state,
            "why_dry": self._why_dry,
        }

    def tidy(self) -> None:
        """Cancel what a check left."""
        if self._cluster:
            self._cluster.run(["scancel", "--state=PENDING,RUNNING,SUSPENDED"])

    def close(self) -> None:
        """End the cluster; nothing is left running."""
        if self._cluster:
            self._cluster.down()
            self._cluster = None
            shutil.rmtree(self._state, ignore_errors=True)
