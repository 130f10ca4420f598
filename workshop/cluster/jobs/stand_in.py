"""Stands for the training script when a job script is checked: who was started where.

It is copied into the folder of the check under the names of the scripts of ``src/``,
so it imports nothing of the workshop, and defines itself what it reads: ``Orders``.
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
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "record"
LONGEST_START = 15.0  # seconds between the first and the last rank
BEFORE_FAILING = 0.3  # seconds: the other ranks have started by then
NAMES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
KEPT = ("MASTER_", "SLURM", "PBS", "OMPI_COMM", "PMI", "TORCHELASTIC", "CUDA_VISIBLE")
ALSO = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "PATH")


@dataclass(frozen=True)
class Orders:
    """What the ranks of a submitted script are to do: ``record/orders.json``."""

    failing_rank: int | None = None  # ends with failing_status; the others wait for it
    failing_status: int = 3  # an exit status
    work_seconds: float = 0.0  # how long a rank works
    working_rank: int | None = None  # only this one works; None: every rank does

    def write(self, record: Path) -> None:
        """Leave them in the folder of what the job writes down."""
        (record / "orders.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, record: Path) -> "Orders":
        return cls(**json.loads((record / "orders.json").read_text()))

    def works(self, rank: int) -> bool:
        return self.working_rank in (None, rank)


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
    orders = Orders.read(FOLDER)
    if orders.failing_rank == rank:
        time.sleep(BEFORE_FAILING)
        print(f"rank {rank} fails, as this test wants it", file=sys.stderr, flush=True)
        failure_of(rank).touch()
        return orders.failing_status
    if orders.failing_rank is not None and is_started(orders.failing_rank):
        wait_for(failure_of(orders.failing_rank))
    if orders.works(rank):
        time.sleep(orders.work_seconds)
    (FOLDER / f"{name}.finished").touch()
    return 0


def failure_of(rank: int) -> Path:
    """The file that a rank leaves when it fails."""
    return FOLDER / f"failed.{rank}"


def is_started(rank: int) -> bool:
    """Whether this step or this torchrun has a rank of that number."""
    if "RANK" in os.environ:  # from torchrun: the check asks for a rank that exists
        return True
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS")  # a rank is a task of the step
    return not tasks or rank < int(tasks)


def wait_for(path: Path) -> None:
    """Until ``path`` is there: on a busy machine the ranks start far apart."""
    end = time.monotonic() + LONGEST_START
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
