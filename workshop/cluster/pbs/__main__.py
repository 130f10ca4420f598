"""Run a command on the login host with the commands of the rehearsal at hand.

    python -m workshop.cluster.pbs [--state DIR] [--gpus N] [--cpus N] bash

The practice cluster must be up. The rehearsal ends with the command, and whatever jobs
are left end with it. The next one in this folder continues to number the jobs.
"""

import argparse
import signal
import sys
from pathlib import Path

from workshop.cluster.nodes import Cluster, ClusterError

from .server import Rehearsal


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.cluster.pbs",
        description="A rehearsal of OpenPBS, not OpenPBS itself, on the practice "
        "cluster: qsub, qstat, qdel, qsig, pbsdsh, pbs_tmrsh for COMMAND, which runs "
        "on the login host. It ends with COMMAND.",
    )
    parser.add_argument("--cpus", type=int, default=8, help="ncpus of each host")
    parser.add_argument("--gpus", type=int, default=0, help="ngpus of each host")
    parser.add_argument("--domain", default="", help="of the hosts, such as hpc.test")
    parser.add_argument("--state", help="of the cluster, as for `workshop cluster`")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    args = parser.parse_args()
    if not args.command:
        parser.error("say what to run, for example: bash")
    try:
        with Rehearsal(
            Cluster(args.state),
            ncpus=args.cpus,
            ngpus=args.gpus,
            ssh=True,
            domain=args.domain,
            number_file=Path.cwd() / ".workshop" / "pbs_jobs",
        ) as pbs:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command
            return pbs.shell(args.command)
    except ClusterError as error:
        print(f"rehearsal: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
