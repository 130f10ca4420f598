"""Stands for the training script when a job script is checked: who was started where.

It is copied into the folder of the check under the names of the scripts of ``src/``.
Each process writes down its host, its arguments and the variables that a launcher
sets; that takes no torch and hardly any time. A check can have one rank fail, or say
that ranks work for some seconds (see ``scheduler.py``). A process that
comes to the end of its work leaves a file, too.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "record"
LONGEST_START = 15.0  # seconds between the first and the last rank
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
    failing_rank = orders.get("failing_rank")
    if failing_rank == rank:
        time.sleep(0.3)
        print(f"rank {rank} fails, as this test wants it", file=sys.stderr, flush=True)
        (FOLDER / f"failed.{rank}").touch()
        return orders["failing_status"]
    alone = "RANK" not in os.environ  # no torchrun: a rank is a task of the step
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS") if alone else None
    if failing_rank is not None and failing_rank < int(tasks or failing_rank + 1):
        wait_for(FOLDER / f"failed.{failing_rank}")
    if orders.get("working_rank") in (None, rank):
        time.sleep(orders["work_seconds"])
    (FOLDER / f"{name}.finished").touch()
    return 0


def wait_for(path: Path) -> None:
    """Until ``path`` is there: on a busy machine the ranks start far apart."""
    end = time.monotonic() + LONGEST_START
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
