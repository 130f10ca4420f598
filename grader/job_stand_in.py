"""Stands for the training script when a job script is checked: who was started where.

It is copied into the folder of the check under the names of the scripts of ``src/``.
Each process writes down its host, its arguments and the variables that a launcher
sets; that takes no torch and hardly any time. A check can have one rank fail, or say
that a rank works for some seconds (see :mod:`grader.jobs`).
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "record"
NAMES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
KEPT = ("MASTER_", "SLURM", "PBS", "OMPI_COMM", "PMI", "TORCHELASTIC", "CUDA_VISIBLE")
ALSO = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")


def main() -> int:
    rank = next((int(os.environ[n]) for n in NAMES if os.environ.get(n)), 0)
    found = {
        "program": Path(sys.argv[0]).name,
        "host": socket.gethostname().split(".")[0],
        "rank": rank,
        "args": sys.argv[1:],
        "cwd": os.getcwd(),
        "env": {
            name: value
            for name, value in os.environ.items()
            if name.startswith((*KEPT, "GLOO_", "NCCL_", "OMP_")) or name in ALSO
        },
    }
    name = f"worker.{found['host']}.{os.getpid()}.{time.time_ns()}"
    (FOLDER / f"{name}.new").write_text(json.dumps(found))
    os.replace(FOLDER / f"{name}.new", FOLDER / name)
    print(f"{found['program']} runs as rank {rank} on {found['host']}", flush=True)
    orders = json.loads((FOLDER / "orders.json").read_text())
    if orders["failing_rank"] == rank:
        time.sleep(0.3)
        print(f"rank {rank} fails, as it was told to", file=sys.stderr, flush=True)
        return orders["failing_status"]
    time.sleep(orders["work_seconds"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
